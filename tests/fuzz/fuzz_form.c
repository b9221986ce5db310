/* A form of arbitrary bytes, behind one that says in how long pieces it comes: it comes to the same in one piece. A
   file that is kept has what was sent of it, and of one that is refused nothing stays. */
#include <string.h>

#include "files/form.h"
#include "scratch.h"

#define TYPE "multipart/form-data; boundary=x"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mt_files *files;

static void forget(void)
{
    mt_files_close(files);
}

static bool send(const uint8_t *data, size_t size, size_t piece, mt_files_about *about, mt_error *err)
{
    mt_files_form form = {.files = files, .owner = "", .needs_purpose = piece % 2 != 0};
    bool ok = mt_files_form_init(&form, TYPE, err);

    for (size_t i = 0; ok && i < size; i += piece)
        ok = mt_files_form_add(&form, (const char *)data + i, piece < size - i ? piece : size - i, err);
    ok = ok && mt_files_form_end(&form, err);
    *about = form.about;
    mt_files_form_free(&form);
    assert(ok || strlen(err->text) > 0);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t piece = size > 0 ? 1 + data[0] : 1;
    mt_files_about one, other;
    mt_error err = {0};
    bool ok, again;

    if (!files) {
        files = mt_files_open(scratch_path("files"), (mt_files_limits){.bytes = 1 << 24, .files = 4}, &err);
        assert(files);
        atexit(forget);
    }
    ok = send(data, size, piece, &one, &err);
    again = send(data, size, size + 2 + (size + piece) % 2, &other, &err);
    assert(ok == again);
    if (ok) {
        assert(one.bytes == other.bytes && one.bytes <= size && strcmp(one.sha256, other.sha256) == 0);
        assert(strcmp(one.name, other.name) == 0 && strcmp(one.type, other.type) == 0);
        assert(mt_files_remove(files, "", one.id) && mt_files_remove(files, "", other.id));
    }
    assert(mt_files_look(files).count == 0 && mt_files_look(files).bytes == 0);
    return 0;
}
