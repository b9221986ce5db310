/* Weights that are used in place are read from their file when the binder is done, and nothing else is. The files have
   holes for tensors: of these no page is in memory until somebody reads it. */
#include "weights_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "weights/bind.h"

#define ROWS 10240 /* of 4 KiB: more than are read at once */
#define BYTES ((size_t)ROWS * 4096)
#define BOUND "model.layers.0.a.weight"
#define UNUSED "model.layers.0.b.weight"

static void put_holes(void)
{
    char header[512], path[512];
    mt_buf image;
    const int len = snprintf(header, sizeof(header),
                             "{\"" BOUND "\":{\"dtype\":\"F32\",\"shape\":[%d,1024],\"data_offsets\":[0,%zu]},\"" UNUSED
                             "\":{\"dtype\":\"F32\",\"shape\":[%d,1024],\"data_offsets\":[%zu,%zu]}}",
                             ROWS, BYTES, ROWS, BYTES, 2 * BYTES);
    assert_true(len > 0 && (size_t)len < sizeof(header));
    image = make_image(header, 0);
    put_bytes("model.safetensors", image.data, image.len);
    snprintf(path, sizeof(path), "%s/model.safetensors", folder);
    assert_int_equal(truncate(path, (off_t)(image.len + 2 * BYTES)), 0);
    mt_buf_free(&image);
    put_text("config.json", "{}");
}

/* How many pages of a tensor are not in memory. */
static size_t cold_pages(const mt_checkpoint *c, const char *name)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t data = (uintptr_t)mt_checkpoint_find(c, name)->data, first = data / page * page;
    const size_t count = (data + BYTES - first + page - 1) / page;
    unsigned char *in = mt_alloc(count);
    size_t cold = 0;
    assert_int_equal(mincore((void *)first, data + BYTES - first, (void *)in), 0);
    for (size_t i = 0; i < count; i++)
        cold += !(in[i] & 1);
    mt_free(in);
    return cold;
}

/* Some systems only begin to read, and how far they are is anybody's guess. */
static bool reads_at_once(void)
{
#ifdef MADV_POPULATE_READ
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *place = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool can = place != MAP_FAILED && madvise(place, page, MADV_POPULATE_READ) == 0;
    if (place != MAP_FAILED)
        munmap(place, page);
    return can;
#else
    return false;
#endif
}

static void bind(mt_checkpoint *c)
{
    mt_arena *arena = mt_arena_new(0);
    mt_binder *binder = mt_binder_new(c, arena);
    mt_error err = {0};
    mt_bind_cost cost;
    mt_mat mat;
    assert_true(mt_bind_matrix(binder, "layers.0.a", ROWS, 1024, &mat));
    assert_true(mt_binder_finish(binder, &cost, &err));
    assert_int_equal(cost.mapped_bytes, BYTES);
    mt_arena_free(arena);
}

static void what_is_used_in_place_is_in_memory_afterwards(void **state)
{
    mt_error err = {0};
    (void)state;
    if (!reads_at_once())
        skip();
    put_holes();
    mt_checkpoint *c = mt_checkpoint_open(folder, &err);
    assert_non_null(c);
    assert_true(cold_pages(c, BOUND) > 0);
    bind(c);
    assert_int_equal(cold_pages(c, BOUND), 0);
    assert_true(cold_pages(c, UNUSED) > 0);
    bind(c); /* nothing is left to be read */
    assert_int_equal(cold_pages(c, BOUND), 0);
    mt_checkpoint_close(c);
}

static void who_only_looks_reads_nothing(void **state)
{
    mt_error err = {0};
    (void)state;
    put_holes();
    mt_checkpoint *c = mt_checkpoint_inspect(folder, &err);
    assert_non_null(c);
    const size_t before = cold_pages(c, BOUND);
    assert_true(before > 0);
    bind(c);
    assert_true(cold_pages(c, BOUND) >= before);
    mt_checkpoint_close(c);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(what_is_used_in_place_is_in_memory_afterwards),
    IN_FOLDER(who_only_looks_reads_nothing),
};

UNIT_MAIN(tests)
