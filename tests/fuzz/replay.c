/* Stands in for libFuzzer where the tests are plain programs: runs the target over each file of the folders named on
   the command line. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data;
    long size;
    int ok;

    if (!file)
        return 0;
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    data = malloc(size > 0 ? (size_t)size : 1);
    ok = size >= 0 && data && fread(data, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (ok)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return ok;
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    int passed = 0, failed = 0;

    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        struct dirent *entry;

        if (!folder) {
            printf("\"%s\" cannot be opened\n", argv[i]);
            failed++;
            continue;
        }
        while ((entry = readdir(folder))) {
            char path[4096];

            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
            printf("%s\n", path);
            fflush(stdout); /* the last one named is the one that crashed */
            if (replay_file(path))
                passed++;
            else
                failed++;
        }
        closedir(folder);
    }
    printf("%s: %d passed, %d failed\n", name, passed, failed);
    return failed || !passed;
}
