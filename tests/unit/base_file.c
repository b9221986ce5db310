#include "unit.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mapping.h"

static char folder[] = "/tmp/motet-file-XXXXXX";
static char path[64];

static void write_file(const char *content, size_t len)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, len, file), len);
    fclose(file);
}

static int make_folder(void **state)
{
    (void)state;
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/f", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void expect_failure(mt_code code, const char *name, const char *sentence)
{
    char wanted[256];
    mt_buf buf;
    mt_error err;
    mt_file file;

    snprintf(wanted, sizeof(wanted), sentence, name);
    mt_buf_init(&buf, 100);
    assert_false(mt_file_map(&file, name, &err));
    assert_int_equal(err.code, code);
    assert_string_equal(err.text, wanted);
    assert_null(file.data);
    assert_false(mt_file_read(&buf, name, &err));
    assert_string_equal(err.text, wanted);
    mt_buf_free(&buf);
}

static void a_file_is_mapped(void **state)
{
    mt_file file;
    mt_error err;

    (void)state;
    write_file("content", 7);
    assert_true(mt_file_map(&file, path, &err));
    assert_int_equal(file.size, 7);
    assert_memory_equal(file.data, "content", 7);
    mt_file_unmap(&file);
    assert_null(file.data);
    mt_file_unmap(&file);
}

static void an_empty_file_is_mapped(void **state)
{
    mt_file file;
    mt_error err;

    (void)state;
    write_file("", 0);
    assert_true(mt_file_map(&file, path, &err));
    assert_int_equal(file.size, 0);
    mt_file_unmap(&file);
}

static void a_file_is_read_up_to_the_limit(void **state)
{
    static char large[40000];
    char wanted[256];
    mt_error err;
    mt_buf buf;

    (void)state;
    memset(large, 'q', sizeof(large));
    write_file(large, sizeof(large));
    mt_buf_init(&buf, sizeof(large));
    assert_true(mt_file_read(&buf, path, &err));
    assert_int_equal(buf.len, sizeof(large));
    assert_memory_equal(buf.data, large, sizeof(large));
    mt_buf_free(&buf);

    mt_buf_init(&buf, sizeof(large) - 1);
    assert_false(mt_file_read(&buf, path, &err));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    snprintf(wanted, sizeof(wanted),
             "\"%s\" is larger than the 39999 bytes allowed for it: check that it is the right file", path);
    assert_string_equal(err.text, wanted);
    mt_buf_free(&buf);
}

static void what_is_not_there(void **state)
{
    char below[80];

    (void)state;
    expect_failure(MT_E_NOT_FOUND, "/no/such/file", "\"%s\" does not exist: check the path");
    write_file("x", 1);
    snprintf(below, sizeof(below), "%s/g", path);
    expect_failure(MT_E_NOT_FOUND, below, "\"%s\" does not exist: check the path");
}

static void what_is_no_file(void **state)
{
    (void)state;
    expect_failure(MT_E_INVALID, folder, "\"%s\" is a folder: name a file");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_failure(MT_E_INVALID, path, "\"%s\" is not a regular file: name one that is");
}

static void what_may_not_be_read(void **state)
{
    (void)state;
    if (getuid() == 0)
        UNIT_SKIP("root may read everything");
    write_file("x", 1);
    chmod(path, 0);
    expect_failure(MT_E_IO, path, "\"%s\" may not be read: check its permissions");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
/* What a program that reads a mapped file says, and the status it ends with, after the file was cut to len bytes. */
static int read_shortened(off_t len, char *said, size_t size)
{
    int ends[2], how;
    ssize_t got;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        mt_file other, file;
        volatile const char *at;

        dup2(ends[1], STDERR_FILENO);
        mt_mapping_guard();
        if (!mt_file_map(&other, path, NULL) || !mt_file_map(&file, path, NULL) || truncate(path, len))
            _exit(1);
        mt_file_unmap(&other);
        at = file.data;
        _exit(at[file.size - 1] == 'q' ? 0 : 1);
    }
    close(ends[1]);
    got = read(ends[0], said, size - 1);
    said[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
}

static void a_mapped_file_that_is_shortened_ends_with_a_sentence(void **state)
{
    static char large[200000];
    char said[512], wanted[512];

    (void)state;
    memset(large, 'q', sizeof(large));
    write_file(large, sizeof(large));
    assert_int_equal(read_shortened(sizeof(large), said, sizeof(said)), 0);
    assert_string_equal(said, "");
    assert_int_equal(read_shortened(100, said, sizeof(said)), MT_EXIT_MAPPING);
    snprintf(wanted, sizeof(wanted),
             "motet: \"%s\" was shortened while it was in use: put the whole file back and start again\n", path);
    assert_string_equal(said, wanted);
}

static const struct CMUnitTest tests[] = {
    TEST(a_mapped_file_that_is_shortened_ends_with_a_sentence),
    TEST(a_file_is_mapped),
    TEST(an_empty_file_is_mapped),
    TEST(a_file_is_read_up_to_the_limit),
    TEST(what_is_not_there),
    TEST(what_is_no_file),
    TEST(what_may_not_be_read),
};
UNIT_MAIN(tests)
