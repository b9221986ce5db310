/* Forms with which files are uploaded: what clients send, in pieces of any length, and what is wrong with it. */
#include "folder.h"

#include <unistd.h>

#include "base/alloc.h"
#include "files/form.h"
#include "files/types.h"

#define TYPE "multipart/form-data; boundary=xYz"
#define FILE_PART(name, type) \
    "--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" name "\"\r\nContent-Type: " type "\r\n\r\n"
#define FIELD(name, value) "--xYz\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"
#define USER_DATA FIELD("purpose", "user_data")
#define END "--xYz--\r\n"

static mt_files *files;
static mt_error err;
static mt_files_form form;

static int open_files(void **state)
{
    if (make_folder(state))
        return -1;
    files = mt_files_open(folder, (mt_files_limits){.bytes = 1 << 20, .files = 10}, &err);
    return files ? 0 : -1;
}

static int close_files(void **state)
{
    const size_t left = mt_files_look(files).count;

    mt_files_close(files);
    return remove_folder(state) || left > 1 ? -1 : 0;
}

/* Sends a form in pieces of so many bytes; false: err says why it was refused. */
static bool send(const char *type, const char *body, size_t len, size_t piece)
{
    bool ok;

    form = (mt_files_form){.files = files, .owner = "", .needs_purpose = true};
    ok = mt_files_form_init(&form, type, &err);
    for (size_t i = 0; ok && i < len; i += piece)
        ok = mt_files_form_add(&form, body + i, piece < len - i ? piece : len - i, &err);
    ok = ok && mt_files_form_end(&form, &err);
    mt_files_form_free(&form);
    return ok;
}

static void check_content(const char *wanted)
{
    mt_files_about about;
    char text[256] = "";
    const int fd = mt_files_read(files, "", form.about.id, &about, &err);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text) - 1), strlen(wanted));
    assert_string_equal(text, wanted);
    close(fd);
    assert_true(mt_files_remove(files, "", form.about.id));
}

static void forms_come_in_pieces(void **state)
{
    static const char body[] = "a preamble that nobody reads\r\n" FIELD("other", "-")
        FILE_PART("a.txt", "text/plain") "line\r\n--xY is no end\r\n\r\n--xYZ\r\n--\r"
                                         "\r\n" USER_DATA FIELD("expires_after[anchor]", "created_at")
                                             FIELD("expires_after[seconds]", "3600") END "an epilogue";

    (void)state;
    for (size_t piece = 1; piece < sizeof(body); piece++) {
        assert_true(send(TYPE, body, strlen(body), piece));
        assert_string_equal(form.about.name, "a.txt");
        assert_string_equal(form.about.type, "text/plain");
        assert_string_equal(form.about.purpose, "user_data");
        assert_int_equal(form.about.expires, form.about.created + 3600);
        check_content("line\r\n--xY is no end\r\n\r\n--xYZ\r\n--\r");
    }
}

static void an_empty_file_is_one(void **state)
{
    static const char body[] = FILE_PART("", "application/octet-stream") "\r\n" USER_DATA END;

    (void)state;
    assert_true(send("Multipart/Form-Data; charset=utf-8; boundary=\"xYz\"", body, strlen(body), 7));
    assert_string_equal(form.about.name, "file");
    assert_int_equal(form.about.bytes, 0);
    assert_int_equal(form.about.expires, 0);
}

static void check_name(const char *disposition, const char *name)
{
    mt_buf body = {.limit = 4096};

    mt_buf_printf(&body, "--xYz\r\ncontent-disposition:form-data; name=file; %s\r\n\r\n.\r\n" USER_DATA END,
                  disposition);
    assert_true(send(TYPE, body.data, body.len, 1000));
    assert_string_equal(form.about.name, name);
    assert_true(mt_files_remove(files, "", form.about.id));
    mt_buf_free(&body);
}

static void names_are_those_of_files(void **state)
{
    (void)state;
    check_name("filename=\"a;b.txt\"", "a;b.txt");
    check_name("filename=plain.md", "plain.md");
    check_name("filename=\"../../etc/passwd\"", "passwd");
    check_name("filename=\"C:\\\\dir\\\\x.csv\"", "x.csv");
    check_name("filename=\"C:\\dir\\x.csv\"", "x.csv");
    check_name("filename=\"say %22hi%22 %41\"", "say \"hi\" %41");
    check_name("filename=\"say \\\"hi\\\"\"", "say \"hi\"");
    check_name("filename=\"x\"; filename*=UTF-8''n%C3%A4h%2Fe%00%0A.txt", "e__.txt");
    check_name("filename=\"n\xC3\xA4h.txt\"", "n\xC3\xA4h.txt");
    check_name("filename=\"dir/\"", "file");
}

static void check_refused(const char *body, size_t piece, const char *sentence)
{
    assert_false(send(TYPE, body, strlen(body), piece));
    if (!strstr(err.text, sentence))
        print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, sentence));
    assert_int_equal(mt_files_look(files).count, 0);
    assert_int_equal(mt_files_look(files).bytes, 0);
}

static void what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *body, *sentence;
    } cases[] = {
        {"", "ends before its last boundary"},
        {"no boundary", "ends before its last boundary"},
        {FILE_PART("a", "b") "cut off\r\n--xYz", "ends before its last boundary"},
        {FILE_PART("a", "b") "\r\n--xYz??", "something else than the end of its line"},
        {END, "\"file\" is missing"},
        {USER_DATA END, "\"file\" is missing"},
        {FILE_PART("a", "b") "\r\n" END, "\"purpose\" is missing"},
        {FILE_PART("a", "b") "\r\n" FIELD("purpose", "fun") END, "\"purpose\" is none that is known"},
        {FILE_PART("a", "b") "\r\n" FILE_PART("a", "b") "\r\n" USER_DATA END, "more than one file"},
        {FILE_PART("a", "b") "\r\n" USER_DATA FIELD("expires_after[seconds]", "3600") END, "\"expires_after\""},
        {FILE_PART("a", "b") "\r\n" USER_DATA FIELD("expires_after[anchor]", "created_at")
             FIELD("expires_after[seconds]", "3599") END,
         "\"expires_after\""},
        {FILE_PART("a", "b") "\r\n" USER_DATA FIELD("expires_after[anchor]", "created_at")
             FIELD("expires_after[seconds]", "7776001") END,
         "from 3600 to 7776000 seconds"},
        {FILE_PART("a", "b") "\r\n" USER_DATA FIELD("expires_in_seconds", "soon") END, "\"expires_in_seconds\""},
        {"--xYz\r\n\r\nx\r\n" END, "no content-disposition"},
        {"--xYz\r\nContent-Disposition: form-data\r\n\r\nx\r\n" END, "has no name"},
        {FILE_PART("\xFF", "b") "\r\n" END, "is not UTF-8"},
        {FILE_PART("a", "\x01") "\r\n" END, "bytes that it may not have"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++)
        for (size_t piece = 1; piece < 500; piece *= 5)
            check_refused(cases[i].body, piece, cases[i].sentence);
    assert_false(send("application/json", "{}", 2, 2));
    assert_false(send("", "{}", 2, 2));
    assert_non_null(strstr(err.text, "send it as multipart/form-data"));
    assert_false(send(TYPE "123456789 123456789 123456789 123456789 123456789 123456789 123456789", "", 0, 1) &&
                 send("multipart/form-data; boundary=", "", 0, 1));
}

static void forms_are_bounded(void **state)
{
    mt_buf body = {.limit = 1 << 20};

    (void)state;
    for (size_t i = 0; i <= MT_LIMIT_FORM_PARTS; i++)
        mt_buf_puts(&body, FIELD("other", "x"));
    check_refused(body.data, 1000, "more than 32 parts");
    body.len = 0;
    mt_buf_printf(&body, "--xYz\r\nX: %*s\r\n\r\n", MT_LIMIT_FORM_HEAD, "");
    check_refused(body.data, 1000, "more than 8192 bytes");
    check_refused(body.data, 100000, "more than 8192 bytes");
    body.len = 0;
    mt_buf_printf(&body, FIELD("purpose", "%*s") END, MT_LIMIT_FORM_VALUE + 1, "");
    check_refused(body.data, 100, "more than 1024 bytes");
    body.len = 0;
    mt_buf_printf(&body, FILE_PART("%*s", "b"), MT_LIMIT_FILE_NAME + 1, "");
    check_refused(body.data, 100, "more than 255 bytes");
    mt_buf_free(&body);
}

static void types_are_known_by_names(void **state)
{
    (void)state;
    assert_string_equal(mt_files_type("text/x", "a.pdf"), "text/x");
    assert_string_equal(mt_files_type("", "a.b.PDF"), "application/pdf");
    assert_string_equal(mt_files_type("application/octet-stream", "a.md"), "text/markdown");
    assert_string_equal(mt_files_type("", "a.what"), "application/octet-stream");
    assert_string_equal(mt_files_type("", "pdf"), "application/octet-stream");
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, open_files, close_files)

static const struct CMUnitTest tests[] = {
    WITH_FILES(forms_come_in_pieces),  WITH_FILES(an_empty_file_is_one), WITH_FILES(names_are_those_of_files),
    WITH_FILES(what_is_wrong_is_said), WITH_FILES(forms_are_bounded),    cmocka_unit_test(types_are_known_by_names),
};
UNIT_MAIN(tests)
