#include "weights_files.h"

#include "base/alloc.h"
#include "weights/limits.h"
#include "weights/safetensors.h"

/* Parsed from memory that ends exactly where the image ends, so that the sanitizers see one byte too far. */
static mt_safetensors *parse_image(const mt_buf *image, size_t len, uint8_t **copy, mt_error *err)
{
    mt_safetensors *file;

    *copy = mt_alloc(len ? len : 1);
    memcpy(*copy, image->data, len);
    file = mt_safetensors_parse(*copy, len, err);
    if (!file)
        mt_free(*copy);
    return file;
}

static void expect_refusal(const char *header, size_t bytes, const char *sentence)
{
    mt_buf image = make_image(header, bytes);
    uint8_t *copy;
    mt_error err = {0};

    assert_null(parse_image(&image, image.len, &copy, &err));
    expect_sentence(&err, MT_E_INVALID, sentence);
    mt_buf_free(&image);
}

static void a_file_is_read(void **state)
{
    mt_buf image = make_image("{\"__metadata__\":{\"format\":\"mlx\",\"x\":[1]},"
                              "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                              "\"a\":{\"data_offsets\":[0,4],\"extra\":{},\"shape\":[],\"dtype\":\"F32\"},"
                              "\"e\":{\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[9,9]}}  ",
                              16);
    uint8_t *copy;
    mt_error err = {0};
    mt_safetensors *file = parse_image(&image, image.len, &copy, &err);
    const mt_tensor_info *t;

    (void)state;
    assert_string_equal(err.text, "");
    assert_non_null(file);
    assert_int_equal(mt_safetensors_count(file), 3);
    assert_string_equal(mt_safetensors_at(file, 0)->name, "a");
    t = mt_safetensors_find(file, "b");
    assert_int_equal(t->dtype, MT_DTYPE_BF16);
    assert_string_equal(t->dtype_name, "BF16");
    assert_int_equal(t->dims, 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->bytes, 12);
    assert_int_equal(t->data[0], 4);
    assert_int_equal(mt_safetensors_find(file, "a")->dims, 0);
    assert_int_equal(mt_safetensors_find(file, "e")->bytes, 0);
    assert_null(mt_safetensors_find(file, "c"));
    mt_safetensors_close(file);
    mt_free(copy);
    mt_buf_free(&image);
}

static void a_file_without_tensors_is_read(void **state)
{
    mt_buf image = make_image("{}", 0);
    uint8_t *copy;
    mt_error err = {0};
    mt_safetensors *file = parse_image(&image, image.len, &copy, &err);

    (void)state;
    assert_non_null(file);
    assert_int_equal(mt_safetensors_count(file), 0);
    assert_null(mt_safetensors_find(file, "a"));
    mt_safetensors_close(file);
    mt_free(copy);
    mt_buf_free(&image);
}

static void every_dtype_has_its_size(void **state)
{
    static const struct {
        const char *name;
        mt_dtype dtype;
        size_t bits;
    } rows[] = {
        {"F32", MT_DTYPE_F32, 32},        {"F16", MT_DTYPE_F16, 16},   {"BF16", MT_DTYPE_BF16, 16},
        {"U8", MT_DTYPE_U8, 8},           {"U32", MT_DTYPE_U32, 32},   {"F8_E4M3", MT_DTYPE_F8_E4M3, 8},
        {"I64", MT_DTYPE_OTHER, 64},      {"I32", MT_DTYPE_I32, 32},   {"I16", MT_DTYPE_OTHER, 16},
        {"I8", MT_DTYPE_I8, 8},           {"BOOL", MT_DTYPE_OTHER, 8}, {"F64", MT_DTYPE_OTHER, 64},
        {"U16", MT_DTYPE_OTHER, 16},      {"U64", MT_DTYPE_OTHER, 64}, {"F8_E5M2", MT_DTYPE_OTHER, 8},
        {"F8_E8M0", MT_DTYPE_F8_E8M0, 8}, {"F4", MT_DTYPE_OTHER, 4},   {"F6_E2M3", MT_DTYPE_OTHER, 6},
        {"C64", MT_DTYPE_OTHER, 64},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t wrong = 0; wrong < 2; wrong++) {
            size_t bytes = 8 * rows[i].bits / 8 + wrong;
            char header[160];
            mt_buf image;
            mt_error err = {0};
            uint8_t *copy;
            mt_safetensors *file;

            snprintf(header, sizeof(header), "{\"a\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%zu]}}",
                     rows[i].name, bytes);
            image = make_image(header, bytes);
            file = parse_image(&image, image.len, &copy, &err);
            assert_true((file != NULL) == (wrong == 0));
            if (file) {
                assert_int_equal(mt_safetensors_at(file, 0)->dtype, rows[i].dtype);
                mt_safetensors_close(file);
                mt_free(copy);
            }
            mt_buf_free(&image);
        }
    }
}

static void an_unknown_dtype_is_carried(void **state)
{
    mt_buf image = make_image("{\"a\":{\"dtype\":\"F2_NEW\",\"shape\":[3],\"data_offsets\":[0,5]}}", 5);
    uint8_t *copy;
    mt_error err = {0};
    mt_safetensors *file = parse_image(&image, image.len, &copy, &err);

    (void)state;
    assert_non_null(file);
    assert_int_equal(mt_safetensors_at(file, 0)->dtype, MT_DTYPE_OTHER);
    assert_string_equal(mt_safetensors_at(file, 0)->dtype_name, "F2_NEW");
    assert_int_equal(mt_safetensors_at(file, 0)->bytes, 5);
    mt_safetensors_close(file);
    mt_free(copy);
    mt_buf_free(&image);
}

/* However short the file is cut, there is an error and never a tensor that points beyond it. */
static void a_file_cut_anywhere_is_refused(void **state)
{
    mt_buf image =
        make_image("{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F16\",\"shape\":[2,2],"
                   "\"data_offsets\":[0,8]},\"v\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
                   12);

    (void)state;
    for (size_t len = 0; len < image.len; len++) {
        uint8_t *copy;
        mt_error err = {0};

        assert_null(parse_image(&image, len, &copy, &err));
        assert_int_equal(err.code, MT_E_INVALID);
        assert_non_null(strstr(err.text, "truncated"));
    }
    mt_buf_free(&image);
}

/* The same with the header's length made to fit, so that the JSON itself ends early. */
static void a_header_cut_anywhere_is_refused(void **state)
{
    static const char header[] =
        "{\"w\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8],\"x\":[{\"y\":null}]}}";

    (void)state;
    for (size_t len = 0; len < sizeof(header) - 1; len++) {
        char part[sizeof(header)] = "";
        mt_buf image;
        uint8_t *copy;
        mt_error err = {0};

        memcpy(part, header, len);
        image = make_image(part, 8);
        assert_null(parse_image(&image, image.len, &copy, &err));
        assert_non_null(strstr(err.text, "its header is malformed (invalid JSON at byte"));
        mt_buf_free(&image);
    }
}

static void what_is_truncated_says_so(void **state)
{
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n";
    static const uint8_t huge[] = {0, 0, 0, 0, 0, 0, 0, 255, '{', '}'};
    mt_error err = {0};

    (void)state;
    assert_null(mt_safetensors_parse((const uint8_t *)"abc", 3, &err));
    expect_sentence(&err, MT_E_INVALID,
                    "the file is truncated: it has 3 bytes, fewer than a header; download the file again");
    assert_null(mt_safetensors_parse(huge, sizeof(huge), &err));
    expect_sentence(
        &err, MT_E_INVALID,
        "the file is truncated or no safetensors file: it claims a header of 18374686479671623680 bytes and has "
        "2; download the file again");
    assert_null(mt_safetensors_parse((const uint8_t *)lfs, sizeof(lfs), &err));
    expect_sentence(&err, MT_E_INVALID, "the file is a git-lfs pointer, not the weights; run \"git lfs pull\"");
    expect_refusal(
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]}}", 8,
        "the file is truncated: tensor \"w\" ends at byte 9 of the data, but there are only 8; download the file "
        "again");
}

static void lies_are_refused(void **state)
{
    (void)state;
    expect_refusal(
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,0]}}", 8,
        "the header gives tensor \"w\" a wrong \"data_offsets\": it must be an array of two integers, the first "
        "not above the second; download the file again");
    expect_refusal("{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 8,
                   "the header lies: tensor \"w\" has 4 bytes of data, which is not what its shape and dtype F32 need; "
                   "download the file again");
    expect_refusal("{\"w\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 8,
                   "the header lies: tensor \"w\" has 0 bytes of data, which is not what its shape and dtype U8 need; "
                   "download the file again");
    /* 2^61 elements of 8 bytes are 2^64 bytes, which is 0 where it overflows */
    expect_refusal("{\"w\":{\"dtype\":\"I64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 8,
                   "the header lies: tensor \"w\" has 0 bytes of data, which is not what its shape and dtype I64 need; "
                   "download the file again");
    expect_refusal("{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                   "\"v\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
                   8, "the header lies: tensors \"w\" and \"v\" overlap; download the file again");
    expect_refusal("{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                   "\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
                   8, "the header names tensor \"w\" twice; download the file again");
}

static void wrong_entries_are_refused(void **state)
{
    char header[MT_LIMIT_TENSOR_NAME + 80], name[MT_LIMIT_TENSOR_NAME + 2];

    (void)state;
    expect_refusal("[]", 0, "its header is no JSON object; download the file again");
    expect_refusal("{\"w\":7}", 0,
                   "the header gives tensor \"w\" a wrong \"entry\": it must be an object; download the file again");
    expect_refusal("{\"__metadata__\":7}", 0, "the header's \"__metadata__\" is no object; download the file again");
    expect_refusal("{\"w\":{\"shape\":[],\"data_offsets\":[0,0]}}", 0,
                   "the header gives tensor \"w\" no \"dtype\"; download the file again");
    expect_refusal("{\"w\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", 0,
                   "the header gives tensor \"w\" no \"shape\"; download the file again");
    expect_refusal("{\"w\":{\"dtype\":\"U8\",\"shape\":[]}}", 0,
                   "the header gives tensor \"w\" no \"data_offsets\"; download the file again");
    expect_refusal(
        "{\"w\":{\"dtype\":5}}", 0,
        "the header gives tensor \"w\" a wrong \"dtype\": it must be a short string; download the file again");
    expect_refusal("{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0,
                   "the header gives tensor \"w\" two \"dtype\"; download the file again");
    expect_refusal(
        "{\"w\":{\"shape\":[1,-1]}}", 0,
        "the header gives tensor \"w\" a wrong \"shape\": it must be an array of integers that are not negative; "
        "download the file again");
    expect_refusal(
        "{\"w\":{\"shape\":[1.0]}}", 0,
        "the header gives tensor \"w\" a wrong \"shape\": it must be an array of integers that are not negative; "
        "download the file again");
    expect_refusal("{\"w\":{\"shape\":[1,1,1,1,1,1,1,1,1]}}", 0, "tensor \"w\" has more than 8 dimensions");
    expect_refusal(
        "{\"w\":{\"data_offsets\":[0,1,2]}}", 0,
        "the header gives tensor \"w\" a wrong \"data_offsets\": it must be an array of two integers, the first "
        "not above the second; download the file again");
    expect_refusal("{\"w\\u0000\":{}}", 0,
                   "the header has a tensor name with control characters; download the file again");
    expect_refusal("{\"\":{}}", 0, "the header has a tensor name of 0 bytes; 1 to 512 are allowed");
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    snprintf(header, sizeof(header), "{\"%s\":{}}", name);
    expect_refusal(header, 0, "the header has a tensor name of 513 bytes; 1 to 512 are allowed");
}

static void a_path_is_named(void **state)
{
    char path[64];
    mt_error err = {0};

    (void)state;
    put_text("a.safetensors", "abc");
    snprintf(path, sizeof(path), "%s/a.safetensors", folder);
    assert_null(mt_safetensors_open(path, &err));
    expect_sentence(
        &err, MT_E_INVALID,
        "\"%s/a.safetensors\": the file is truncated: it has 3 bytes, fewer than a header; download the file "
        "again");
    put_text("a.safetensors", "");
    assert_null(mt_safetensors_open(path, &err));
    PUT_TENSORS("a.safetensors", {"w", "F32", "2", 8, NULL});
    mt_safetensors *file = mt_safetensors_open(path, &err);
    assert_non_null(file);
    assert_int_equal(mt_safetensors_find(file, "w")->data[5], 5);
    mt_safetensors_close(file);
    mt_safetensors_close(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_is_read),
    cmocka_unit_test(a_file_without_tensors_is_read),
    cmocka_unit_test(every_dtype_has_its_size),
    cmocka_unit_test(an_unknown_dtype_is_carried),
    cmocka_unit_test(a_file_cut_anywhere_is_refused),
    cmocka_unit_test(a_header_cut_anywhere_is_refused),
    cmocka_unit_test(what_is_truncated_says_so),
    cmocka_unit_test(lies_are_refused),
    cmocka_unit_test(wrong_entries_are_refused),
    IN_FOLDER(a_path_is_named),
};
UNIT_MAIN(tests)
