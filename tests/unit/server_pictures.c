/* Room for pictures is waited for: who needs more than is left goes on when others have left as much. */
#include "unit.h"

#include <jansson.h>
#include <pthread.h>

#include "server/prepare/pictures.h"

#define PATCHES 10000

typedef struct giver {
    mt_prep prep;
    mt_client client;
    atomic_bool stop;
    mt_pictures pictures;
    mt_request *request;
    mt_error err;
    bool ok;
} giver;

static void begin(giver *g, mt_picture_room *room)
{
    json_t *body = json_object();

    *g = (giver){.pictures = {.room = room, .prep = &g->prep}, .request = mt_request_new()};
    g->prep = (mt_prep){.stop = &g->stop, .client = &g->client};
    assert_true(mt_pictures_init(&g->pictures, body, &g->err));
    json_decref(body);
    g->pictures.at = mt_arena_alloc(g->pictures.arena, sizeof(*g->pictures.at));
    g->pictures.at->patches = mt_arena_alloc(g->pictures.arena, PATCHES);
    g->pictures.count = 1;
}

static void *give(void *ctx)
{
    giver *g = ctx;

    g->ok = mt_pictures_give(&g->pictures, g->request, &g->err);
    return NULL;
}

static void who_finds_no_room_waits_for_it(void **state)
{
    mt_picture_room room;
    giver first, second;
    pthread_t thread;

    (void)state;
    mt_picture_room_init(&room, PATCHES + PATCHES / 2);
    begin(&first, &room);
    begin(&second, &room);
    give(&first);
    assert_true(first.ok && room.used >= PATCHES);
    assert_int_equal(pthread_create(&thread, NULL, give, &second), 0);
    usleep(200000); /* who would not wait has given up by now */
    mt_request_free(first.request);
    pthread_join(thread, NULL);
    if (!second.ok)
        fail_msg("%s", second.err.text);
    mt_request_free(second.request);
    assert_int_equal(room.used, 0);
    mt_pictures_free(&first.pictures);
    mt_pictures_free(&second.pictures);
    mt_picture_room_free(&room);
}

/* What all of the room does not hold is never there. */
static void who_wants_more_than_there_is_does_not_wait(void **state)
{
    mt_picture_room room;
    giver g;

    (void)state;
    mt_picture_room_init(&room, PATCHES / 2);
    begin(&g, &room);
    give(&g);
    assert_false(g.ok);
    assert_int_equal(g.err.code, MT_E_TOO_LARGE);
    mt_request_free(g.request);
    mt_pictures_free(&g.pictures);
    assert_int_equal(room.used, 0);
    mt_picture_room_free(&room);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_finds_no_room_waits_for_it),
    cmocka_unit_test(who_wants_more_than_there_is_does_not_wait),
};

UNIT_MAIN(tests)
