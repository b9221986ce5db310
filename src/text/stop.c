/* The algorithm of Aho and Corasick. A node stands for a beginning of a stop string. The current node is the longest
   one that the text so far ends with; its text is what must be held back. So the number of the node is the whole
   state. */
#include "text/stop.h"

#include <string.h>

#include "base/alloc.h"
#include "text/limits.h"

enum { ROOT = 0, NONE = -1 };

typedef struct node {
    const char *text; /* the beginning that it stands for; in mt_stop.texts */
    uint32_t len;
    uint32_t child, sibling; /* indices of nodes; 0: none */
    uint32_t shorter;        /* the node of the longest proper suffix of text */
    int match;               /* index of the longest stop string that text ends with, or NONE */
} node;

struct mt_stop {
    char *texts;
    node *nodes;
    uint32_t count;
    size_t *lengths;  /* of the stop strings */
    bool starts[256]; /* whether a stop string begins with this byte */
};

static uint32_t find_child(const mt_stop *stop, uint32_t at, char c)
{
    uint32_t child = stop->nodes[at].child;

    while (child && stop->nodes[child].text[stop->nodes[child].len - 1] != c)
        child = stop->nodes[child].sibling;
    return child;
}

static void add_string(mt_stop *stop, const char *text, size_t len, int number)
{
    uint32_t at = ROOT;

    for (uint32_t i = 0; i < len; i++) {
        uint32_t child = find_child(stop, at, text[i]);

        if (!child) {
            child = stop->count++;
            stop->nodes[child] = (node){.text = text, .len = i + 1, .sibling = stop->nodes[at].child, .match = NONE};
            stop->nodes[at].child = child;
        }
        at = child;
    }
    if (stop->nodes[at].match == NONE)
        stop->nodes[at].match = number;
}

static uint32_t follow(const mt_stop *stop, uint32_t at, char c)
{
    uint32_t child = find_child(stop, at, c);

    while (!child && at != ROOT) {
        at = stop->nodes[at].shorter;
        child = find_child(stop, at, c);
    }
    return child;
}

/* Sets `shorter` and `match`. Breadth first, since a node needs those of shorter nodes. */
static void link_nodes(mt_stop *stop)
{
    uint32_t *queue = mt_alloc_array(stop->count, sizeof(*queue));
    size_t done = 0, found = 1; /* the first is the root */

    while (done < found) {
        uint32_t at = queue[done++];

        for (uint32_t child = stop->nodes[at].child; child; child = stop->nodes[child].sibling) {
            node *n = &stop->nodes[child];

            n->shorter = at == ROOT ? ROOT : follow(stop, stop->nodes[at].shorter, n->text[n->len - 1]);
            if (n->match == NONE)
                n->match = stop->nodes[n->shorter].match;
            queue[found++] = child;
        }
    }
    mt_free(queue);
}

mt_stop *mt_stop_new(const mt_stop_string *strings, size_t count, mt_error *err)
{
    size_t total = 0, used = 0;
    mt_stop *stop;

    if (count > MT_LIMIT_STOP_STRINGS) {
        mt_fail(err, MT_E_INVALID, "there are %zu stop strings; use at most %d", count, MT_LIMIT_STOP_STRINGS);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (strings[i].len > MT_LIMIT_STOP_BYTES) {
            mt_fail(err, MT_E_INVALID, "a stop string has %zu bytes; use at most %d", strings[i].len,
                    MT_LIMIT_STOP_BYTES);
            return NULL;
        }
        total += strings[i].len;
    }
    stop = mt_alloc(sizeof(*stop));
    stop->texts = mt_alloc(total + 1);
    stop->nodes = mt_alloc_array(total + 1, sizeof(*stop->nodes));
    stop->lengths = mt_alloc_array(count + 1, sizeof(*stop->lengths));
    stop->nodes[ROOT].match = NONE;
    stop->count = 1;
    for (size_t i = 0; i < count; i++) {
        stop->lengths[i] = strings[i].len;
        if (strings[i].len == 0)
            continue;
        memcpy(stop->texts + used, strings[i].str, strings[i].len);
        add_string(stop, stop->texts + used, strings[i].len, (int)i);
        used += strings[i].len;
        stop->starts[(unsigned char)strings[i].str[0]] = true;
    }
    link_nodes(stop);
    return stop;
}

void mt_stop_free(mt_stop *stop)
{
    if (!stop)
        return;
    mt_free(stop->texts);
    mt_free(stop->nodes);
    mt_free(stop->lengths);
    mt_free(stop);
}

/* The number of bytes at the start of text that leave the state at the root. */
static size_t skip(const mt_stop *stop, const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && !stop->starts[(unsigned char)text[n]])
        n++;
    return n;
}

/* Advances by one byte and appends the text that need not be held back any longer. Returns the index of a complete stop
   string, or NONE. */
static int step(const mt_stop *stop, mt_stop_state *state, char c, mt_buf *out)
{
    const node *before = &stop->nodes[state->node], *now;
    size_t held, leaving;

    state->node = follow(stop, state->node, c);
    now = &stop->nodes[state->node];
    held = now->match == NONE ? now->len : stop->lengths[now->match];
    leaving = before->len + 1 - held;
    mt_buf_add(out, before->text, leaving < before->len ? leaving : before->len);
    if (leaving > before->len)
        mt_buf_add(out, &c, 1);
    if (now->match != NONE)
        state->node = ROOT;
    return now->match;
}

int mt_stop_feed(const mt_stop *stop, mt_stop_state *state, const char *text, size_t len, mt_buf *out)
{
    for (size_t at = 0; at < len; at++) {
        int match;

        if (state->node == ROOT) {
            size_t free_run = skip(stop, text + at, len - at);

            mt_buf_add(out, text + at, free_run);
            at += free_run;
            if (at == len)
                break;
        }
        match = step(stop, state, text[at], out);
        if (match != NONE)
            return match;
    }
    return NONE;
}

void mt_stop_finish(const mt_stop *stop, mt_stop_state *state, mt_buf *out)
{
    const node *n = &stop->nodes[state->node];

    mt_buf_add(out, n->text, n->len);
    state->node = ROOT;
}
