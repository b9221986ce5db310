#include "weights_files.h"

#include "base/alloc.h"
#include "gguf_files.h"
#include "weights/limits.h"

static void expect_part(const mt_error *err, mt_code code, const char *part)
{
    if (err->code != code || !strstr(err->text, part))
        fail_msg("code %d, \"%s\" instead of code %d, \"%s\"", (int)err->code, err->text, (int)code, part);
}

/* Parsed from memory that ends exactly where the image ends, so that the sanitizers see one byte too far. */
static mt_gguf *parse_image(mt_buf *image, size_t len, uint8_t **copy, mt_error *err)
{
    mt_gguf *g;

    *copy = mt_alloc(len ? len : 1);
    memcpy(*copy, image->data, len);
    g = mt_gguf_parse(*copy, len, err);
    if (!g)
        mt_free(*copy);
    return g;
}

static void expect_refusal(gguf_writer *w, mt_code code, const char *sentence)
{
    mt_buf image = gguf_image(w);
    uint8_t *copy;
    mt_error err = {0};

    assert_null(parse_image(&image, image.len, &copy, &err));
    expect_part(&err, code, sentence);
    mt_buf_free(&image);
}

/* A file with values of all types and tensors of some. */
static mt_buf rich_image(void)
{
    gguf_writer w = {0};
    const float floats[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const uint8_t blocks[2 * 34] = {7};

    gguf_put_string(&w, "general.architecture", "llama");
    gguf_put_u32(&w, "llama.block_count", 3);
    gguf_put_f32(&w, "llama.eps", 0.5f);
    gguf_put_bool(&w, "flag", true);
    gguf_key(&w, "low", MT_GGUF_I8);
    gguf_add(&w.keys, "\xfe", 1);
    gguf_key(&w, "lower", MT_GGUF_I64);
    gguf_add_u64(&w.keys, (uint64_t)-5);
    gguf_key(&w, "huge", MT_GGUF_U64);
    gguf_add_u64(&w.keys, UINT64_MAX);
    gguf_key(&w, "wide", MT_GGUF_F64);
    gguf_add(&w.keys, &(double){0.1}, sizeof(double));
    gguf_put_array(&w, "words", MT_GGUF_STRING, 3);
    gguf_add_text(&w.keys, "a");
    gguf_add_text(&w.keys, "");
    gguf_add_text(&w.keys, "ccc");
    gguf_put_array(&w, "numbers", MT_GGUF_I16, 2);
    gguf_add(&w.keys, "\xff\xff\x01\x01", 4);
    gguf_put_array(&w, "nothing", MT_GGUF_U32, 0);
    gguf_put_matrix(&w, "output.weight", 0, 2, 4, floats, sizeof(floats));
    gguf_put_matrix(&w, "blk.0.attn_q.weight", 8, 2, 32, blocks, sizeof(blocks));
    gguf_put_matrix(&w, "b", 30, 1, 2, floats, 4);
    return gguf_image(&w);
}

static void values_are_read(void **state)
{
    mt_buf image = rich_image();
    uint8_t *copy;
    mt_error err = {0};
    mt_gguf *g = parse_image(&image, image.len, &copy, &err);
    mt_gguf_text text;
    int64_t n = 0;
    double x = 0;

    (void)state;
    assert_string_equal(err.text, "");
    assert_true(mt_gguf_string(g, "general.architecture", &text) && mt_gguf_text_is(text, "llama"));
    assert_false(mt_gguf_text_is(text, "llam"));
    assert_false(mt_gguf_string(g, "llama.block_count", &text));
    assert_true(mt_gguf_int(g, "llama.block_count", &n) && n == 3);
    assert_true(mt_gguf_float(g, "llama.block_count", &x) && x == 3);
    assert_true(mt_gguf_float(g, "llama.eps", &x) && x == 0.5);
    assert_false(mt_gguf_int(g, "llama.eps", &n));
    assert_true(mt_gguf_int(g, "flag", &n) && n == 1 && mt_gguf_bool(g, "flag", false));
    assert_false(mt_gguf_float(g, "flag", &x));
    assert_true(mt_gguf_int(g, "low", &n) && n == -2);
    assert_true(mt_gguf_int(g, "lower", &n) && n == -5);
    assert_false(mt_gguf_int(g, "huge", &n));
    assert_true(mt_gguf_float(g, "wide", &x) && x == 0.1);
    assert_true(mt_gguf_has(g, "words"));
    assert_false(mt_gguf_has(g, "word"));
    assert_false(mt_gguf_int(g, "words", &n) || mt_gguf_float(g, "words", &x) || mt_gguf_string(g, "words", &text));
    assert_true(mt_gguf_bool(g, "absent", true));
    mt_gguf_close(g);
    mt_free(copy);
    mt_buf_free(&image);
}

static void arrays_are_read(void **state)
{
    mt_buf image = rich_image();
    uint8_t *copy;
    mt_error err = {0};
    mt_gguf *g = parse_image(&image, image.len, &copy, &err);
    const mt_gguf_array *a;
    mt_gguf_text text;
    int64_t n = 0;
    double x = 0;

    (void)state;
    a = mt_gguf_array_of(g, "words");
    assert_int_equal(mt_gguf_count(a), 3);
    assert_int_equal(mt_gguf_element(a), MT_GGUF_STRING);
    assert_true(mt_gguf_array_string(a, 0, &text) && mt_gguf_text_is(text, "a"));
    assert_true(mt_gguf_array_string(a, 1, &text) && text.len == 0);
    assert_true(mt_gguf_array_string(a, 2, &text) && mt_gguf_text_is(text, "ccc"));
    assert_false(mt_gguf_array_string(a, 3, &text) || mt_gguf_array_int(a, 0, &n) || mt_gguf_array_float(a, 0, &x));
    a = mt_gguf_array_of(g, "numbers");
    assert_true(mt_gguf_array_int(a, 0, &n) && n == -1);
    assert_true(mt_gguf_array_float(a, 1, &x) && x == 257);
    assert_false(mt_gguf_array_int(a, 2, &n) || mt_gguf_array_string(a, 0, &text));
    assert_int_equal(mt_gguf_count(mt_gguf_array_of(g, "nothing")), 0);
    assert_null(mt_gguf_array_of(g, "flag"));
    assert_null(mt_gguf_array_of(g, "absent"));
    mt_gguf_close(g);
    mt_free(copy);
    mt_buf_free(&image);
}

static void tensors_are_read(void **state)
{
    mt_buf image = rich_image();
    uint8_t *copy;
    mt_error err = {0};
    mt_gguf *g = parse_image(&image, image.len, &copy, &err);
    const mt_tensor_info *t;
    float value;

    (void)state;
    assert_int_equal(mt_gguf_tensors(g), 3);
    assert_int_equal(mt_gguf_files(g), 1);
    assert_string_equal(mt_gguf_tensor(g, 0)->name, "b");
    t = mt_gguf_find(g, "output.weight");
    assert_int_equal(t->dtype, MT_DTYPE_F32);
    assert_int_equal(t->dims, 2);
    assert_int_equal(t->shape[0], 2);
    assert_int_equal(t->shape[1], 4);
    assert_int_equal(t->bytes, 32);
    memcpy(&value, t->data + 4, sizeof(value));
    assert_true(value == 2);
    t = mt_gguf_find(g, "blk.0.attn_q.weight");
    assert_int_equal(t->dtype, MT_DTYPE_BLOCKS);
    assert_int_equal(t->ggml_type, 8);
    assert_string_equal(t->dtype_name, "Q8_0");
    assert_int_equal(t->bytes, 68);
    assert_int_equal(t->data[0], 7);
    assert_int_equal(mt_gguf_find(g, "b")->dtype, MT_DTYPE_BF16);
    assert_null(mt_gguf_find(g, "c"));
    mt_gguf_close(g);
    mt_free(copy);
    mt_buf_free(&image);
}

/* Every prefix of a file is refused, until all its tensors are there. */
static void a_shortened_file_is_refused(void **state)
{
    mt_buf image = rich_image();

    (void)state;
    for (size_t len = 0; len < image.len; len++) {
        uint8_t *copy;
        mt_error err = {0};

        assert_null(parse_image(&image, len, &copy, &err));
        expect_part(&err, MT_E_INVALID, "the file is truncated");
    }
    mt_buf_free(&image);
}

static void versions_are_told_apart(void **state)
{
    static const struct {
        uint32_t version;
        const char *sentence;
    } cases[] = {{1, "the file has version 1 of GGUF; motet reads 2 and 3"},
                 {4, "the file has version 4 of GGUF"},
                 {3u << 24, "the file is big-endian"}};
    uint8_t *copy;
    mt_error err = {0};
    mt_buf image;
    gguf_writer w = {.version = 2};
    mt_gguf *g;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        expect_refusal(&(gguf_writer){.version = cases[i].version}, MT_E_UNSUPPORTED, cases[i].sentence);
    image = gguf_image(&w);
    g = parse_image(&image, image.len, &copy, &err);
    assert_non_null(g);
    mt_gguf_close(g);
    mt_free(copy);
    image.data[0] = 'X';
    assert_null(parse_image(&image, image.len, &copy, &err));
    expect_part(&err, MT_E_INVALID, "the file is no GGUF file");
    mt_buf_free(&image);
}

static void keys_that_lie_are_refused(void **state)
{
    gguf_writer w = {0};
    char name[MT_LIMIT_TENSOR_NAME + 2] = "";

    (void)state;
    gguf_put_u32(&w, "one", 1);
    gguf_put_u32(&w, "one", 2);
    expect_refusal(&w, MT_E_INVALID, "the header has key \"one\" twice");
    gguf_key(&w, "odd", 13);
    expect_refusal(&w, MT_E_INVALID, "the header gives key \"odd\" a value of the unknown type 13");
    gguf_put_array(&w, "odd", 99, 1);
    expect_refusal(&w, MT_E_INVALID, "the header gives key \"odd\" a value of the unknown type 99");
    gguf_put_array(&w, "deep", MT_GGUF_ARRAY, 1);
    expect_refusal(&w, MT_E_UNSUPPORTED, "the header gives key \"deep\" an array of arrays");
    gguf_put_array(&w, "long", MT_GGUF_STRING, 1000);
    expect_refusal(&w, MT_E_INVALID, "the file is truncated");
    gguf_put_array(&w, "long", MT_GGUF_U8, UINT64_MAX);
    expect_refusal(&w, MT_E_TOO_LARGE, "the header gives key \"long\" 18446744073709551615 elements");
    gguf_key(&w, "text", MT_GGUF_STRING);
    gguf_add_u64(&w.keys, UINT64_MAX - 4);
    expect_refusal(&w, MT_E_INVALID, "the file is truncated");
    gguf_put_u32(&w, "", 1);
    expect_refusal(&w, MT_E_INVALID, "the header has a name of 0 bytes for a key");
    gguf_put_u32(&w, "a\nb", 1);
    expect_refusal(&w, MT_E_INVALID, "the header has a name with control characters for a key");
    memset(name, 'x', sizeof(name) - 1);
    gguf_put_u32(&w, name, 1);
    expect_refusal(&w, MT_E_INVALID, "the header has a name of 513 bytes for a key");
    w.key_count = UINT64_MAX;
    expect_refusal(&w, MT_E_TOO_LARGE, "the header counts 18446744073709551615 keys");
}

static void alignments_are_checked(void **state)
{
    static const uint32_t wrong[] = {0, 3, 48, 1u << 21};
    gguf_writer w = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        gguf_put_u32(&w, "general.alignment", wrong[i]);
        expect_refusal(&w, MT_E_INVALID, "the header's \"general.alignment\" is");
    }
    gguf_put_string(&w, "general.alignment", "32");
    expect_refusal(&w, MT_E_INVALID, "the header's \"general.alignment\" is 0");
    w.alignment = 64;
    gguf_put_u32(&w, "general.alignment", 64);
    gguf_info(&w, "a", 0, 1, (uint64_t[]){4}, 32);
    gguf_add(&w.data, (char[64]){0}, 64);
    expect_refusal(&w, MT_E_INVALID, "tensor \"a\" begins at byte 32, which is not aligned to 64");
}

static void tensors_that_lie_are_refused(void **state)
{
    static const struct {
        uint32_t type;
        unsigned dims;
        uint64_t shape[9], offset;
        mt_code code;
        const char *sentence;
    } cases[] = {
        {0, 1, {16}, 32, MT_E_INVALID, "the file is truncated: tensor \"t\" needs 64 bytes from byte 32"},
        {0, 1, {16}, UINT64_MAX - 31, MT_E_INVALID, "the file is truncated: tensor \"t\" needs 64 bytes"},
        {0, 2, {1ull << 32, 1ull << 32}, 0, MT_E_INVALID, "the header gives tensor \"t\" a dimension of"},
        {0, 1, {INT64_MAX}, 0, MT_E_INVALID, "the header gives tensor \"t\" 9223372036854775807 elements"},
        {0, 2, {4, 0}, 0, MT_E_INVALID, "the header gives tensor \"t\" a dimension of 0"},
        {0, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, MT_E_INVALID, "the header gives tensor \"t\" 9 dimensions"},
        {8, 1, {33}, 0, MT_E_INVALID, "tensor \"t\" has rows of 33 elements, which blocks of Q8_0 (32 elements)"},
        {4, 1, {32}, 0, MT_E_UNSUPPORTED, "the header gives tensor \"t\" the type 4, which motet does not know"},
        {99, 1, {32}, 0, MT_E_UNSUPPORTED, "the header gives tensor \"t\" the type 99, which motet does not know"},
    };
    gguf_writer w = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        gguf_info(&w, "t", cases[i].type, cases[i].dims, cases[i].shape, cases[i].offset);
        gguf_add(&w.data, (char[64]){0}, 64);
        expect_refusal(&w, cases[i].code, cases[i].sentence);
    }
    gguf_info(&w, "a", 0, 1, (uint64_t[]){16}, 0);
    gguf_info(&w, "b", 0, 1, (uint64_t[]){16}, 32);
    gguf_add(&w.data, (char[96]){0}, 96);
    expect_refusal(&w, MT_E_INVALID, "the header lies: tensors \"a\" and \"b\" overlap");
    gguf_put_matrix(&w, "a", 0, 1, 1, "abcd", 4);
    gguf_put_matrix(&w, "a", 0, 1, 1, "abcd", 4);
    expect_refusal(&w, MT_E_INVALID, "the header names tensor \"a\" twice");
    w.tensor_count = 1000001;
    expect_refusal(&w, MT_E_TOO_LARGE, "the header counts 1000001 tensors");
}

/* A file with `keys` keys, an array of `elements` bytes and this alignment. */
static bool try_limits(size_t keys, size_t elements, uint32_t alignment, mt_error *err)
{
    gguf_writer w = {0};
    char *zeros = mt_alloc(elements);
    mt_buf image;
    uint8_t *copy;
    mt_gguf *g;

    gguf_put_u32(&w, "general.alignment", alignment);
    gguf_put_array(&w, "array", MT_GGUF_U8, elements);
    gguf_add(&w.keys, zeros, elements);
    for (size_t i = 2; i < keys; i++) {
        char name[32];

        snprintf(name, sizeof(name), "key.%zu", i);
        gguf_put_bool(&w, name, true);
    }
    image = gguf_image(&w);
    g = parse_image(&image, image.len, &copy, err);
    if (g)
        mt_free(copy);
    mt_gguf_close(g);
    mt_buf_free(&image);
    mt_free(zeros);
    return g != NULL;
}

static void limits_are_exact(void **state)
{
    mt_error err = {0};

    (void)state;
    assert_true(try_limits(MT_LIMIT_GGUF_KEYS, MT_LIMIT_GGUF_ELEMENTS, MT_LIMIT_GGUF_ALIGNMENT, &err));
    assert_false(try_limits(MT_LIMIT_GGUF_KEYS + 1, 1, 32, &err));
    expect_part(&err, MT_E_TOO_LARGE, "the header counts 65537 keys; at most 65536 are read");
    assert_false(try_limits(2, MT_LIMIT_GGUF_ELEMENTS + 1, 32, &err));
    expect_part(&err, MT_E_TOO_LARGE, "all arrays of a file may have 16777216 together");
    assert_false(try_limits(2, 1, 2 * MT_LIMIT_GGUF_ALIGNMENT, &err));
    expect_part(&err, MT_E_INVALID, "it must be a power of two up to 1048576");
}

static void put_shard(const char *file, const char *tensor, unsigned number, unsigned count)
{
    gguf_writer w = {0};
    mt_buf image;

    if (number == 0)
        gguf_put_string(&w, "general.architecture", "llama");
    if (count > 0) {
        gguf_put_u32(&w, "split.no", number);
        gguf_put_u32(&w, "split.count", count);
    }
    gguf_put_matrix(&w, tensor, 0, 1, 1, "abcd", 4);
    image = gguf_image(&w);
    put_bytes(file, image.data, image.len);
    mt_buf_free(&image);
}

static mt_gguf *open_in_folder(const char *name, mt_error *err)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return mt_gguf_open(path, err);
}

static void expect_no_file(const char *name, mt_code code, const char *sentence)
{
    mt_error err = {0};

    assert_null(open_in_folder(name, &err));
    expect_part(&err, code, sentence);
}

static void shards_are_opened_together(void **state)
{
    mt_error err = {0};
    mt_gguf *g;

    (void)state;
    put_shard("m-00001-of-00002.gguf", "a", 0, 2);
    expect_no_file("m-00001-of-00002.gguf", MT_E_NOT_FOUND, "m-00002-of-00002.gguf\" is absent; download it too");
    put_shard("m-00002-of-00002.gguf", "b", 1, 2);
    for (int i = 1; i <= 2; i++) {
        g = open_in_folder(i == 1 ? "m-00001-of-00002.gguf" : "m-00002-of-00002.gguf", &err);
        assert_non_null(g);
        assert_int_equal(mt_gguf_files(g), 2);
        assert_true(mt_gguf_find(g, "a") && mt_gguf_find(g, "b"));
        assert_true(mt_gguf_has(g, "general.architecture"));
        mt_gguf_close(g);
    }
    put_shard("m-00002-of-00002.gguf", "a", 1, 2);
    expect_no_file("m-00001-of-00002.gguf", MT_E_INVALID, "the header names tensor \"a\" twice");
    put_shard("m-00002-of-00002.gguf", "b", 0, 2);
    expect_no_file("m-00001-of-00002.gguf", MT_E_INVALID, "the file says that it is number 1 of 2, its name 2 of 2");
    put_shard("m-00002-of-00002.gguf", "b", 1, 3);
    expect_no_file("m-00001-of-00002.gguf", MT_E_INVALID, "the file says that it is number 2 of 3, its name 2 of 2");
    put_shard("alone.gguf", "a", 0, 2);
    expect_no_file("alone.gguf", MT_E_INVALID, "the file is one of 2, but its name does not say which");
    put_shard("free-00001-of-00001.gguf", "a", 0, 0);
    g = open_in_folder("free-00001-of-00001.gguf", &err);
    assert_non_null(g);
    mt_gguf_close(g);
    expect_no_file("free-00001-of-09999.gguf", MT_E_TOO_LARGE, "counts 9999 shards; at most 1024 are read");
    put_text("text.gguf", "version https://git-lfs.github.com/spec/v1\n");
    expect_no_file("text.gguf", MT_E_INVALID, "text.gguf\": the file is a git-lfs pointer");
    put_text("empty.gguf", "");
    expect_no_file("empty.gguf", MT_E_INVALID, "the file is truncated");
}

static void open_files_are_shared(void **state)
{
    mt_error err = {0};
    mt_gguf *first, *again, *other;

    (void)state;
    put_shard("m-00001-of-00002.gguf", "a", 0, 2);
    put_shard("m-00002-of-00002.gguf", "b", 1, 2);
    first = open_in_folder("m-00001-of-00002.gguf", &err);
    again = open_in_folder("m-00001-of-00002.gguf", &err);
    assert_true(first && first == again);
    mt_gguf_close(again);
    assert_non_null(mt_gguf_find(first, "b"));
    remove_file("m-00002-of-00002.gguf"); /* which is mapped, so that its number stays taken */
    put_shard("m-00002-of-00002.gguf", "c", 1, 2);
    other = open_in_folder("m-00001-of-00002.gguf", &err);
    assert_true(other && other != first);
    assert_true(mt_gguf_find(first, "b") && !mt_gguf_find(other, "b") && mt_gguf_find(other, "c"));
    again = open_in_folder("m-00001-of-00002.gguf", &err);
    assert_ptr_equal(again, other);
    mt_gguf_close(first);
    mt_gguf_close(other);
    assert_non_null(mt_gguf_find(again, "c"));
    mt_gguf_close(again);
    remove_file("m-00002-of-00002.gguf");
    expect_no_file("m-00001-of-00002.gguf", MT_E_NOT_FOUND, "is absent; download it too");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_are_read),         cmocka_unit_test(arrays_are_read),
    cmocka_unit_test(tensors_are_read),        cmocka_unit_test(a_shortened_file_is_refused),
    cmocka_unit_test(versions_are_told_apart), cmocka_unit_test(keys_that_lie_are_refused),
    cmocka_unit_test(alignments_are_checked),  cmocka_unit_test(tensors_that_lie_are_refused),
    cmocka_unit_test(limits_are_exact),        IN_FOLDER(shards_are_opened_together),
    IN_FOLDER(open_files_are_shared),
};
UNIT_MAIN(tests)
