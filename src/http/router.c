/* The table is searched for each request: comparing some dozen routes costs less than the read that brought the
   request. Segments are compared decoded, one at a time, so that an escaped slash stays within its own. */
#include "http/router.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hex.h"
#include "base/nearest.h"
#include "http/limits.h"

/* Decodes into out, NUL-terminated. Returns the length; -1: it is invalid. */
static ptrdiff_t decode(const char *s, size_t len, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)s[i];

        if (c == '%') {
            int high = i + 2 < len ? mt_hex_digit(s[i + 1]) : -1, low = high >= 0 ? mt_hex_digit(s[i + 2]) : -1;

            if (low < 0)
                return -1;
            c = high << 4 | low;
            i += 2;
        }
        if (c < 0x20 || c == 0x7F)
            return -1;
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return (ptrdiff_t)n;
}

static bool is_dots(const char *s, size_t len)
{
    return (len == 1 && s[0] == '.') || (len == 2 && s[0] == '.' && s[1] == '.');
}

bool mt_http_path_decode(const char *path, size_t len, char *out)
{
    size_t start = 0, size = 0;
    ptrdiff_t n = decode(path, len, out);

    if (n < 0)
        return false;
    for (size_t i = 0; i <= (size_t)n; i++) {
        size = i - start;
        if (out[i] != '/' && out[i] != '\0')
            continue;
        if (is_dots(out + start, size))
            return false;
        start = i + 1;
    }
    return true;
}

/* A segment of a path, after its slash. */
typedef struct segment {
    const char *text;
    size_t len;
    const char *next; /* at a slash, or at the end */
} segment;

/* How a parameter of a pattern has to end, behind its brace: ":verb" of "{name}:verb". */
typedef struct tail {
    const char *text;
    size_t len;
} tail;

static segment segment_at(const char *path, const char *end)
{
    segment s = {.text = path + 1};

    for (s.next = s.text; s.next < end && *s.next != '/'; s.next++)
        s.len++;
    return s;
}

/* The brace that ends the parameter which a segment begins with; NULL: it has none. */
static const char *brace_of(const segment *s)
{
    return s->len >= 2 && s->text[0] == '{' ? memchr(s->text, '}', s->len) : NULL;
}

static bool is_param(const segment *s)
{
    return brace_of(s) != NULL;
}

static bool is_rest(const segment *s)
{
    return is_param(s) && brace_of(s)[-1] == '*';
}

static tail tail_of(const segment *s)
{
    const char *begin = brace_of(s) + 1;

    return (tail){.text = begin, .len = s->len - (size_t)(begin - s->text)};
}

/* Decodes a parameter into match->text, of which *used bytes are in use, and cuts off the tail. False: it is empty, or
   does not end so. */
static bool add_param(mt_http_match *match, size_t *used, const char *text, size_t len, tail end)
{
    char *out = match->text + *used;
    ptrdiff_t n = decode(text, len, out);

    if (n <= (ptrdiff_t)end.len || memcmp(out + n - end.len, end.text, end.len) != 0)
        return false;
    out[(size_t)n - end.len] = '\0';
    match->params[match->param_count++] = out;
    *used += (size_t)n - end.len + 1;
    return true;
}

static bool same(mt_http_match *match, size_t used, const segment *pattern, const segment *path)
{
    ptrdiff_t n = decode(path->text, path->len, match->text + used);

    return n == (ptrdiff_t)pattern->len && memcmp(match->text + used, pattern->text, pattern->len) == 0;
}

static bool pattern_fits(const char *pattern, const char *path, const char *end, mt_http_match *match)
{
    const char *pattern_end = pattern + strlen(pattern);
    size_t used = 0;

    match->param_count = 0;
    while (pattern < pattern_end && path < end) {
        segment want = segment_at(pattern, pattern_end), have = segment_at(path, end);

        if (is_rest(&want))
            return add_param(match, &used, have.text, (size_t)(end - have.text), tail_of(&want));
        if (is_param(&want) ? !add_param(match, &used, have.text, have.len, tail_of(&want))
                            : !same(match, used, &want, &have))
            return false;
        pattern = want.next;
        path = have.next;
    }
    return pattern == pattern_end && path == end;
}

static bool serves(const mt_http_route *route, mt_http_method method)
{
    return route->method == method || (route->method == MT_HTTP_GET && method == MT_HTTP_HEAD);
}

/* The length of a path or parameter without the verb that it ends with behind a colon, as Gemini's do. */
static size_t verbless(const char *text, size_t len)
{
    size_t n = len;

    while (n > 0 && text[n - 1] != ':' && text[n - 1] != '/')
        n--;
    return n > 0 && text[n - 1] == ':' ? n - 1 : len;
}

/* Whether a verb that no route knows, such as "tiny:predict", is posted to what a route only takes for a name: the path
   is not there then, whatever else can be asked of the name. */
static bool takes_verb(const mt_http_route *route, mt_http_method method, const mt_http_match *match)
{
    const char *name = match->param_count > 0 ? match->params[match->param_count - 1] : "";

    return method == MT_HTTP_POST && route->pattern[strlen(route->pattern) - 1] == '}' &&
           verbless(name, strlen(name)) < strlen(name);
}

void mt_http_router_match(const mt_http_route *routes, size_t count, mt_http_method method, const char *path,
                          size_t len, mt_http_match *match)
{
    *match = (mt_http_match){.text = mt_alloc(len + MT_LIMIT_HTTP_PARAMS + 1)};
    for (size_t i = 0; i < count && !match->route; i++) {
        if (!pattern_fits(routes[i].pattern, path, path + len, match) ||
            (!serves(&routes[i], method) && takes_verb(&routes[i], method, match)))
            continue;
        match->allowed |= 1u << routes[i].method | 1u << MT_HTTP_OPTIONS;
        if (routes[i].method == MT_HTTP_GET)
            match->allowed |= 1u << MT_HTTP_HEAD;
        if (serves(&routes[i], method))
            match->route = &routes[i];
    }
    if (!match->route)
        match->param_count = 0;
}

/* The pattern as it would be with the path's own segments for its parameters, so that these do not count as slips; how
   a parameter has to end counts. False: it does not fit into out. */
static bool fill_params(const char *pattern, const char *path, char *out, size_t size)
{
    const char *pattern_end = pattern + strlen(pattern), *path_end = path + strlen(path);
    size_t len = 0;

    out[0] = '\0';
    while (pattern < pattern_end && len < size) {
        const segment want = segment_at(pattern, pattern_end);
        const segment have = path < path_end ? segment_at(path, path_end) : (segment){.text = "", .next = path};
        const bool filled = is_param(&want) && have.len > 0;
        const tail end = filled ? tail_of(&want) : (tail){.text = ""};
        const char *use = filled ? have.text : want.text;
        size_t used = !filled ? want.len : is_rest(&want) ? (size_t)(path_end - use) : have.len;

        used = end.len ? verbless(use, used) : used;
        if (used >= size)
            return false;
        len += (size_t)snprintf(out + len, size - len, "/%.*s%.*s", (int)used, use, (int)end.len, end.text);
        pattern = want.next;
        path = have.next;
    }
    return len < size;
}

/* Most slips in a path that is compared with a pattern, less than which are wanted: one in four letters of what stands
   before a parameter and one in three of what it has to end with, since the rest is equal. SIZE_MAX: it has none. */
static size_t most_slips(const char *pattern)
{
    const char *param = strchr(pattern, '{'), *end = strrchr(pattern, ':');

    return param ? (size_t)(param - pattern) / 4 + 1 + (end ? strlen(end) / 3 : 0) : SIZE_MAX;
}

/* Most slips of what follows the segments that both begin with, less than which are wanted: one in three letters. What
   is equal makes no other word of the rest: "/v1/batches" is not near "/v1/cache". */
static size_t slips_behind(const char *path, const char *filled)
{
    size_t equal = 0;

    for (size_t i = 0; path[i] && path[i] == filled[i]; i++)
        equal = path[i] == '/' ? i : equal;
    return strlen(path + equal) / 3 + 1;
}

typedef enum nearness { VERBS, WHOLE, INNER } nearness;

/* Looks among the routes, among those with a verb, or among their patterns without the first segment, such as "/v1".
   WebSockets are left out: a client that asks for one knows its path. */
static const mt_http_route *find_nearest(const mt_http_route *routes, size_t count, const char *path, nearness where)
{
    const mt_http_route *best = NULL;
    char filled[MT_LIMIT_HTTP_NEAREST + 1];
    size_t least = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        const char *pattern = where == INNER ? strchr(routes[i].pattern + 1, '/') : routes[i].pattern;
        mt_nearest one;

        if ((routes[i].flags & MT_HTTP_SOCKET) || !pattern || !pattern[1] || pattern[1] == '{' ||
            (where == VERBS && !strchr(pattern, ':')) || !fill_params(pattern, path, filled, sizeof(filled)))
            continue;
        mt_nearest_init(&one, path);
        one.distance = MT_MIN(MT_MIN(one.distance, slips_behind(path, filled)), MT_MIN(least, most_slips(pattern)));
        mt_nearest_offer(&one, filled);
        if (one.best) {
            best = &routes[i];
            least = one.distance;
        }
    }
    return best;
}

/* Cuts a path that is longer than what is compared: in the middle of the name before its verb, else at its end. Names
   are parameters, which are equal in what they are compared with. */
static void shorten(const char *path, char out[MT_LIMIT_HTTP_NEAREST + 1])
{
    const size_t len = strlen(path), plain = verbless(path, len), verb = len - plain;
    const size_t kept = len <= MT_LIMIT_HTTP_NEAREST   ? plain
                        : verb < MT_LIMIT_HTTP_NEAREST ? MT_MIN(plain, MT_LIMIT_HTTP_NEAREST - verb)
                                                       : 0;

    snprintf(out, MT_LIMIT_HTTP_NEAREST + 1, "%.*s%s", (int)kept, path, kept ? path + plain : "");
}

const mt_http_route *mt_http_router_nearest(const mt_http_route *routes, size_t count, const char *whole)
{
    const mt_http_route *best = NULL;
    char path[MT_LIMIT_HTTP_NEAREST + 1];

    shorten(whole, path);
    if (verbless(path, strlen(path)) < strlen(path))
        best = find_nearest(routes, count, path, VERBS);
    for (nearness where = WHOLE; !best && where <= INNER; where++)
        best = find_nearest(routes, count, path, where);
    return best;
}

static bool check_pattern(const char *pattern, mt_error *err)
{
    const char *at = pattern, *end = pattern + strlen(pattern);
    size_t params = 0;

    if (*pattern != '/')
        return mt_fail(err, MT_E_INTERNAL, "route \"%s\" does not start with a slash", pattern);
    while (at < end) {
        segment s = segment_at(at, end);

        params += is_param(&s);
        if (is_rest(&s) && s.next != end)
            return mt_fail(err, MT_E_INTERNAL, "route \"%s\" goes on behind the rest of the path", pattern);
        at = s.next;
    }
    if (params > MT_LIMIT_HTTP_PARAMS)
        return mt_fail(err, MT_E_INTERNAL, "route \"%s\" has more than %d parameters", pattern, MT_LIMIT_HTTP_PARAMS);
    return true;
}

bool mt_http_router_check(const mt_http_route *routes, size_t count, mt_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!check_pattern(routes[i].pattern, err))
            return false;
    return true;
}

void mt_http_allow_format(unsigned allowed, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (int m = 0; m < MT_HTTP_METHODS; m++)
        if ((allowed & 1u << m) && len < size)
            len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
                                    mt_http_method_name((mt_http_method)m));
}
