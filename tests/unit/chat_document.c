/* Where documents come from, in every shape clients use, and which of their bytes are text. */
#include "unit.h"

#include "chat/document.h"
#include "files/text.h"

#define PLACE "messages[3].content[1]"

static const struct {
    const char *part;
    const char *id, *url, *name; /* NULL: it has none */
    const char *error;           /* what the sentence has in it, where reading fails */
} rows[] = {
    {"{'type':'file','file':{'file_id':'file-1'}}", "file-1", NULL, NULL, NULL},
    {"{'type':'file','file':{'file_data':'YQ==','filename':'a.txt'}}", NULL, "data:;base64,YQ==", "a.txt", NULL},
    {"{'type':'file','file':{'file_data':'data:text/csv;base64,YQ=='}}", NULL, "data:text/csv;base64,YQ==", NULL, NULL},
    {"{'type':'input_file','file_id':'file-1','file_data':null}", "file-1", NULL, NULL, NULL},
    {"{'type':'input_file','file_url':'https://a/b','filename':'b'}", NULL, "https://a/b", "b", NULL},
    {"{'type':'document','title':'T','source':{'type':'file','file_id':'file-1'}}", "file-1", NULL, "T", NULL},
    {"{'type':'document','source':{'type':'base64','media_type':'text/plain','data':'YQ=='}}", NULL,
     "data:;base64,YQ==", NULL, NULL},
    {"{'type':'document','source':{'type':'url','url':'http://a'}}", NULL, "http://a", NULL, NULL},
    {"{'type':'file'}", NULL, NULL, NULL, PLACE " is a file that names no place"},
    {"{'type':'file','file':7}", NULL, NULL, NULL, PLACE " is a file that names no place"},
    {"{'type':'file','file':{'file_id':''}}", NULL, NULL, NULL, "names no place"},
    {"{'type':'input_file','file_id':'f','file_url':'http://a'}", NULL, NULL, NULL, "names more than one place"},
    {"{'type':'input_file','file_data':'data:text/plain,hello'}", NULL, NULL, NULL, "the data URL of " PLACE},
    {"{'type':'input_file','file_data':'a\\u0000b'}", NULL, NULL, NULL, "NUL character"},
};

static json_t *parse(const char *text)
{
    char *copy = strdup(text);
    json_t *json;

    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json = json_loads(copy, JSON_ALLOW_NUL, NULL);
    assert_non_null(json);
    free(copy);
    return json;
}

static void check_text(mt_chat_text text, const char *wanted)
{
    assert_int_equal(text.data != NULL, wanted != NULL);
    if (!wanted)
        return;
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.len);
}

static void every_shape_is_read_or_refused_with_its_place(void **state)
{
    mt_arena *arena = mt_arena_new(1 << 20);

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        json_t *source = parse(rows[i].part);
        const mt_chat_part part = {.type = MT_CHAT_TEXT, .source = source, .place = PLACE};
        mt_chat_document d;
        mt_error err = {0};
        const bool ok = mt_chat_document_read(&d, arena, &part, &err);

        if (ok != !rows[i].error || (!ok && !strstr(err.text, rows[i].error)))
            print_message("%s: %s\n", rows[i].part, err.text);
        assert_int_equal(ok, !rows[i].error);
        if (ok) {
            check_text(d.id, rows[i].id);
            check_text(d.url, rows[i].url);
            check_text(d.name, rows[i].name);
        } else {
            assert_non_null(strstr(err.text, rows[i].error));
        }
        json_decref(source);
    }
    mt_arena_free(arena);
}

static void a_part_waits_for_its_text(void **state)
{
    mt_arena *arena = mt_arena_new(1 << 20);
    json_t *source = parse("{'type':'file'}");
    mt_chat_message m = {.role = MT_CHAT_USER};
    mt_chat chat;

    (void)state;
    mt_chat_begin(&chat, arena, "messages");
    mt_chat_add_text(&chat, &m, (mt_chat_text){.data = "x", .len = 1});
    mt_chat_put(&chat, &m);
    assert_false(mt_chat_has_documents(&chat));
    mt_chat_add_document(&chat, &m, source, PLACE);
    mt_chat_put(&chat, &m);
    assert_true(mt_chat_has_documents(&chat));
    assert_false(mt_chat_has_media(&chat));
    assert_int_equal(m.part_count, 2);
    assert_int_equal(m.parts[1].index, 1);
    assert_ptr_equal(m.parts[1].source, source);
    json_decref(source);
    mt_arena_free(arena);
}

static void pictures_are_known_by_their_urls(void **state)
{
    (void)state;
    assert_true(mt_chat_document_is_picture("data:image/png;base64,AAAA"));
    assert_true(mt_chat_document_is_picture("https://a/b.JPG?x=.txt#y"));
    assert_false(mt_chat_document_is_picture("https://a/b.txt?x=.png"));
    assert_false(mt_chat_document_is_picture("data:application/pdf;base64,AA.png"));
    assert_false(mt_chat_document_is_picture(".png"));
    assert_false(mt_chat_document_is_picture(""));
}

static void check_bytes(const char *bytes, size_t len, const char *sentence)
{
    mt_error err = {0};
    size_t begin;

    assert_int_equal(mt_files_text(bytes, len, &begin, &err), !sentence);
    if (sentence)
        assert_non_null(strstr(err.text, sentence));
}

static void bytes_are_text_or_not(void **state)
{
    mt_error err = {0};
    size_t begin = 9;

    (void)state;
    check_bytes("", 0, NULL);
    check_bytes("# A\r\n\tb\f\x1B[0m \xC3\xA4\n", 15, NULL);
    check_bytes("%PDF", 4, NULL);
    check_bytes("%PDF-", 5, "is a PDF");
    check_bytes("RIFF....WEBP", 12, "is a picture");
    check_bytes("....ftypisom", 12, "a picture or a video");
    check_bytes("PK\x03\x04", 4, "an archive");
    check_bytes("\xFF\xFE"
                "a",
                3, "is UTF-16");
    check_bytes("ab\0c", 4, "at byte 2");
    check_bytes("caf\xC3", 4, "at byte 3");
    check_bytes("\x7F", 1, "at byte 0");
    assert_true(mt_files_text("\xEF\xBB\xBFx", 4, &begin, &err));
    assert_int_equal(begin, 3);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shape_is_read_or_refused_with_its_place),
    cmocka_unit_test(a_part_waits_for_its_text),
    cmocka_unit_test(pictures_are_known_by_their_urls),
    cmocka_unit_test(bytes_are_text_or_not),
};
UNIT_MAIN(tests)
