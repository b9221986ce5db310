/* Where pictures come from, in every shape clients use, and what is said about those that are wrong. */
#include "unit.h"

#include "chat/source.h"

typedef struct row {
    mt_chat_part_type type;
    const char *part;
    const char *url;   /* the first; NULL where reading fails */
    const char *error; /* then: what the sentence has in it */
} row;

static const row rows[] = {
    {MT_CHAT_IMAGE, "{'type':'image_url','image_url':{'url':'data:x'}}", "data:x", NULL},
    {MT_CHAT_IMAGE, "{'type':'image_url','image_url':'http://a/b.png'}", "http://a/b.png", NULL},
    {MT_CHAT_IMAGE, "{'type':'input_image','image_url':'data:y','detail':'low'}", "data:y", NULL},
    {MT_CHAT_IMAGE, "{'type':'image','image':'data:z'}", "data:z", NULL},
    {MT_CHAT_IMAGE, "{'type':'image','url':'data:u'}", "data:u", NULL},
    {MT_CHAT_IMAGE, "{'type':'image','source':{'type':'base64','media_type':'image/png','data':'QUJD'}}",
     "data:image/png;base64,QUJD", NULL},
    {MT_CHAT_IMAGE, "{'type':'image','source':{'type':'url','url':'https://c'}}", "https://c", NULL},
    {MT_CHAT_IMAGE, "{'type':'image','source':{'type':'file','file_id':'file-1'}}", "file-id:file-1", NULL},
    {MT_CHAT_IMAGE, "{'type':'input_image','file_id':'file-1','image_url':null}", "file-id:file-1", NULL},
    {MT_CHAT_IMAGE, "{'type':'input_image','file_id':7}", NULL, "messages[3].content[1] has no URL"},
    {MT_CHAT_VIDEO, "{'type':'video_url','video_url':{'url':'data:v'}}", "data:v", NULL},
    {MT_CHAT_VIDEO, "{'type':'video','video':'data:w'}", "data:w", NULL},
    {MT_CHAT_IMAGE, "{'type':'image_url'}", NULL, "messages[3].content[1] has no URL"},
    {MT_CHAT_IMAGE, "{'type':'image_url','image_url':{'url':''}}", NULL, "messages[3].content[1] has no URL"},
    {MT_CHAT_IMAGE, "{'type':'image_url','image_url':7}", NULL, "messages[3].content[1] has no URL"},
    {MT_CHAT_IMAGE, "{'type':'image','image':['a','b']}", NULL, "messages[3].content[1] has no URL"},
    {MT_CHAT_IMAGE, "{'type':'image','source':{'type':'base64','data':'QUJD'}}", NULL, "\"media_type\""},
    {MT_CHAT_IMAGE, "{'type':'image','image':'data:z','detail':'blurred'}", NULL, "auto, low, high or original"},
    {MT_CHAT_IMAGE, "{'type':'image','image':'data:z','detail':'original'}", "data:z", NULL},
    {MT_CHAT_IMAGE, "{'type':'image','image':'data:z','max_pixels':0}", NULL,
     "\"max_pixels\" of messages[3].content[1]"},
    {MT_CHAT_IMAGE, "{'type':'image','image':'data:z','min_pixels':1.5}", NULL, "\"min_pixels\""},
    {MT_CHAT_IMAGE, "{'type':'image','image':'data:z','do_pan_and_scan':1}", NULL, "neither true nor false"},
    {MT_CHAT_VIDEO, "{'type':'video','video':[]}", NULL, "list of 0 frames"},
    {MT_CHAT_VIDEO, "{'type':'video','video':['data:a',5]}", NULL, "has no URL"},
    {MT_CHAT_VIDEO, "{'type':'video','video':'data:w','fps':0}", NULL, "\"fps\""},
    {MT_CHAT_VIDEO, "{'type':'video','video':'data:w','num_frames':-1}", NULL, "\"num_frames\""},
};

static json_t *parse(const char *text)
{
    char *copy = strdup(text);
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    json_t *json = json_loads(copy, 0, NULL);
    assert_non_null(json);
    free(copy);
    return json;
}

static bool read_part(mt_chat_source *out, mt_arena *arena, mt_chat_part_type type, const json_t *part,
                      const mt_chat_media_options *all, mt_error *err)
{
    const mt_chat_media media = {.type = type, .source = part, .place = "messages[3].content[1]"};
    return mt_chat_source_read(out, arena, &media, all, err);
}

static void every_shape_is_read_or_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_arena *arena = mt_arena_new(0);
        json_t *part = parse(rows[i].part);
        mt_chat_source s;
        mt_error err = {0};
        const bool ok = read_part(&s, arena, rows[i].type, part, &(mt_chat_media_options){0}, &err);
        if (ok != (rows[i].url != NULL))
            fail_msg("%s: %s", rows[i].part, err.text);
        if (ok && (s.count != 1 || s.urls[0].len != strlen(rows[i].url) ||
                   memcmp(s.urls[0].data, rows[i].url, s.urls[0].len) != 0))
            fail_msg("%s gives %.*s", rows[i].part, (int)s.urls[0].len, s.urls[0].data);
        if (!ok && !strstr(err.text, rows[i].error))
            fail_msg("%s is refused with \"%s\"", rows[i].part, err.text);
        json_decref(part);
        mt_arena_free(arena);
    }
}

static void what_the_part_says_comes_before_what_the_request_says(void **state)
{
    const mt_chat_media_options all = {.min_pixels = 10, .max_pixels = 20, .fps = 1};
    mt_arena *arena = mt_arena_new(0);
    json_t *part = parse("{'type':'image_url','max_pixels':30,'image_url':{'url':'data:x','detail':'high','fps':4}}");
    mt_chat_source s;
    mt_error err = {0};
    (void)state;
    assert_true(read_part(&s, arena, MT_CHAT_IMAGE, part, &all, &err));
    assert_int_equal(s.options.min_pixels, 10);
    assert_int_equal(s.options.max_pixels, 30);
    assert_int_equal(s.options.detail, MT_CHAT_DETAIL_HIGH);
    assert_true(s.options.fps == 4);
    json_decref(part);
    mt_arena_free(arena);
}

static void a_video_may_be_a_list_of_frames(void **state)
{
    mt_arena *arena = mt_arena_new(0);
    json_t *part =
        parse("{'type':'video','video':['data:a',{'url':'data:b'},{'type':'image_url','image_url':'data:c'}]}");
    mt_chat_source s;
    mt_error err = {0};
    (void)state;
    assert_true(read_part(&s, arena, MT_CHAT_VIDEO, part, &(mt_chat_media_options){0}, &err));
    assert_true(s.frames);
    assert_int_equal(s.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(s.urls[i].data[5], 'a' + (int)i);
    json_decref(part);
    mt_arena_free(arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_shape_is_read_or_refused_with_its_place),
    cmocka_unit_test(what_the_part_says_comes_before_what_the_request_says),
    cmocka_unit_test(a_video_may_be_a_list_of_frames),
};

UNIT_MAIN(tests)
