/* What a server streams to motet chat: any bytes. However they are cut the answer is the same, and what a terminal gets
   of it commands nothing that we did not write. The first byte is how many bytes come at a time. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chat_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static FILE *screen;

static void show(mt_chat_answer *a, bool reasoning, const char *text)
{
    (void)reasoning;
    mt_chat_wrap_put(&a->wrap, 20, text, screen);
}

static void hear(mt_chat_answer *a, mt_chat_events *e, const char *data, size_t size, size_t piece)
{
    *a = (mt_chat_answer){.piece = show};
    mt_chat_events_init(e, a);
    for (size_t at = 0; at < size; at += piece)
        if (!mt_chat_events_feed(e, data + at, piece < size - at ? piece : size - at))
            break;
}

static void check_same(const mt_buf *a, const mt_buf *b)
{
    assert(a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0));
}

/* Lines, and what moves within one: as chat_wrap.c writes it. */
static void check_screen(const char *at, const char *end)
{
    for (; at < end; at++) {
        if (*at != '\033')
            assert(((unsigned char)*at >= 0x20 || *at == '\n' || *at == '\r') && *at != 0x7F);
        else {
            assert(at[1] == '[');
            at += 2 + strspn(at + 2, "0123456789");
            assert(*at == 'C' || *at == 'K');
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_chat_answer whole, cut;
    mt_chat_events a, b;
    char *written = NULL;
    size_t length = 0;

    if (size == 0)
        return 0;
    screen = open_memstream(&written, &length);
    assert(screen);
    hear(&whole, &a, (const char *)data + 1, size - 1, size);
    hear(&cut, &b, (const char *)data + 1, size - 1, (size_t)data[0] + 1);
    fclose(screen);
    assert(a.too_much == b.too_much && whole.prompt == cut.prompt && whole.tokens == cut.tokens);
    assert(strcmp(whole.finish, cut.finish) == 0 && json_array_size(whole.calls) <= MT_CHAT_CALLS);
    assert(!whole.calls == !cut.calls && (!whole.calls || json_equal(whole.calls, cut.calls)));
    check_same(&whole.text, &cut.text);
    check_same(&whole.reasoning, &cut.reasoning);
    check_same(&a.error, &b.error);
    check_screen(written, written + length);
    mt_chat_events_free(&a);
    mt_chat_events_free(&b);
    mt_chat_answer_free(&whole);
    mt_chat_answer_free(&cut);
    free(written);
    return 0;
}
