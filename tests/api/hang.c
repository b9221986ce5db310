/* Put before PCRE2 by the loader, it makes a thread that is to compile the expression "hang", or to match it with that
   word alone, never come back: stands for whatever a thread might one day not end. With MOTET_TEST_GATE in the
   environment it comes back as soon as there is a file of that name. With MOTET_TEST_LAZY_LOOP there, loops look at
   what has happened ten times a second only: until then, it piles up before them. With MOTET_TEST_CRASH there, every
   PNG makes its decoder crash. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/epoll.h>
#endif
#include <unistd.h>

#include <pcre2.h>

typedef pcre2_code *compile(PCRE2_SPTR pattern, PCRE2_SIZE len, uint32_t options, int *error, PCRE2_SIZE *offset,
                            pcre2_compile_context *context);
typedef int match(const pcre2_code *code, PCRE2_SPTR text, PCRE2_SIZE len, PCRE2_SIZE from, uint32_t options,
                  pcre2_match_data *data, pcre2_match_context *context);

static void hang_at(const unsigned char *text, size_t len)
{
    const char *gate = getenv("MOTET_TEST_GATE");

    while (len == 4 && memcmp(text, "hang", 4) == 0 && (!gate || access(gate, F_OK) != 0))
        usleep(5000);
}

/* C has no other way from one kind of pointer to the other. */
static void find(const char *name, void *function)
{
    void *next = dlsym(RTLD_NEXT, name);

    memcpy(function, &next, sizeof(next));
}

pcre2_code *pcre2_compile(PCRE2_SPTR pattern, PCRE2_SIZE len, uint32_t options, int *error, PCRE2_SIZE *offset,
                          pcre2_compile_context *context)
{
    compile *real;

    hang_at(pattern, len);
    find("pcre2_compile_8", &real);
    return real(pattern, len, options, error, offset, context);
}

int pcre2_match(const pcre2_code *code, PCRE2_SPTR text, PCRE2_SIZE len, PCRE2_SIZE from, uint32_t options,
                pcre2_match_data *data, pcre2_match_context *context)
{
    match *real;

    hang_at(text, len);
    find("pcre2_match_8", &real);
    return real(code, text, len, from, options, data, context);
}

#ifdef __linux__
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
    int (*real)(int, struct epoll_event *, int, int);

    find("epoll_wait", &real);
    if (getenv("MOTET_TEST_LAZY_LOOP"))
        usleep(100000);
    return real(epoll, events, most, timeout);
}
#endif

static volatile int *nowhere;

void *png_create_read_struct(const char *version, void *ctx, void *error, void *warning);

void *png_create_read_struct(const char *version, void *ctx, void *error, void *warning)
{
    void *(*real)(const char *, void *, void *, void *);

    find("png_create_read_struct", &real);
    if (getenv("MOTET_TEST_CRASH"))
        *nowhere = 1;
    return real(version, ctx, error, warning);
}
