/* A GGUF file as the checkpoint it was made from: its files, the names of its tensors, and what is put right. */
#include "weights_files.h"

#include <math.h>

#include "base/limits.h"
#include "gguf_files.h"
#include "weights/bind.h"
#include "weights/census.h"
#include "weights/folder.h"

enum { HIDDEN = 32, HEADS = 2, DIM = 8 };

static void put_sizes(gguf_writer *w, const char *arch)
{
    static const struct {
        const char *key;
        uint32_t value;
    } sizes[] = {{"block_count", 1},          {"context_length", 64},      {"embedding_length", 32},
                 {"feed_forward_length", 32}, {"attention.head_count", 2}, {"attention.head_count_kv", 1},
                 {"attention.key_length", 8}, {"rope.dimension_count", 8}};
    char key[96];

    gguf_put_string(w, "general.architecture", arch);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        snprintf(key, sizeof(key), "%s.%s", arch, sizes[i].key);
        gguf_put_u32(w, key, sizes[i].value);
    }
    snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon", arch);
    gguf_put_f32(w, key, 1e-5f);
}

/* A matrix whose element (row, column) is 100 * row + column. */
static void put_counted(gguf_writer *w, const char *name, uint64_t n, uint64_t k)
{
    float *data = calloc(n * k, sizeof(*data));

    for (size_t i = 0; i < n * k; i++)
        data[i] = (float)(100 * (i / k) + i % k);
    gguf_put_matrix(w, name, 0, n, k, data, n * k * sizeof(*data));
    free(data);
}

static void put_vector(gguf_writer *w, const char *name, const float *data, uint64_t n)
{
    gguf_pad(&w->data, 0);
    gguf_info(w, name, 0, 1, &n, w->data.len);
    gguf_add(&w->data, data, n * sizeof(*data));
}

static void put_file(gguf_writer *w, const char *name)
{
    mt_buf image = gguf_image(w);

    put_bytes(name, image.data, image.len);
    mt_buf_free(&image);
}

static const char *path_of(const char *name)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put_llama(void)
{
    gguf_writer w = {0};

    put_sizes(&w, "llama");
    put_counted(&w, "token_embd.weight", 4, HIDDEN);
    put_counted(&w, "blk.0.attn_q.weight", (uint64_t)HEADS * DIM, HIDDEN);
    put_counted(&w, "blk.0.attn_v.weight", DIM, HIDDEN);
    gguf_put_matrix(&w, "blk.0.ffn_up.weight", 8, 2, HIDDEN, (const uint8_t[68]){0}, 68);
    put_file(&w, "model.gguf");
}

static void files_are_made_of_keys(void **state)
{
    mt_error err = {0};
    mt_folder_file file;
    mt_config *config;
    int64_t value = 0;
    char source[MT_LIMIT_PATH];

    (void)state;
    put_llama();
    for (int i = 0; i < 2; i++) { /* of the file, and of the folder that has no other weights */
        const char *path = i ? path_of("model.gguf") : folder;

        assert_true(mt_folder_has(path, "config.json"));
        assert_false(mt_folder_has(path, "tokenizer.json"));
        assert_null(mt_folder_config(path, "generation_config.json", &err));
        assert_int_equal(err.code, MT_OK);
        config = mt_folder_config(path, "config.json", &err);
        assert_non_null(config);
        assert_string_equal(mt_config_string(config, "model_type", ""), "llama");
        assert_true(mt_config_int(config, "vocab_size", 0, 1, 100, &value, &err) && value == 4);
        assert_true(mt_config_bool(config, "tie_word_embeddings", false));
        mt_config_free(config);
        mt_folder_source(source, path, "config.json");
        assert_string_equal(source, path_of("model.gguf"));
    }
    put_text("tokenizer.json", "{}"); /* what the file does not have may be beside it */
    assert_true(mt_folder_has(path_of("model.gguf"), "tokenizer.json"));
    assert_true(mt_folder_open(&file, folder, "tokenizer.json", &err));
    assert_int_equal(file.len, 2);
    mt_folder_close(&file);
    put_text("config.json", "{\"model_type\":\"martian\"}"); /* the keys count, as they belong to the weights */
    config = mt_folder_config(folder, "config.json", &err);
    assert_string_equal(mt_config_string(config, "model_type", ""), "llama");
    mt_config_free(config);
}

static void files_of_a_folder_are_its_own(void **state)
{
    mt_error err = {0};
    mt_folder_file file;
    mt_config *config;

    (void)state;
    put_text("config.json", "{\"model_type\":\"martian\"}");
    assert_true(mt_folder_has(folder, "config.json"));
    assert_false(mt_folder_has(folder, "tokenizer.json"));
    config = mt_folder_config(folder, "config.json", &err);
    assert_string_equal(mt_config_string(config, "model_type", ""), "martian");
    mt_config_free(config);
    assert_false(mt_folder_open(&file, folder, "tokenizer.json", &err));
    assert_int_equal(err.code, MT_E_NOT_FOUND);
    put_text("broken.gguf", "GGUF");
    assert_true(mt_folder_has(folder, "config.json"));
    assert_null(mt_folder_config(folder, "config.json", &err));
    assert_int_equal(err.code, MT_E_INVALID);
}

static void rows_are_put_in_order(void **state)
{
    mt_error err = {0};
    mt_arena *arena = mt_arena_new(0);
    mt_quant quant = {.method = MT_QUANT_NONE};
    mt_checkpoint *c;
    mt_binder *b;
    mt_census census;
    mt_mat m;

    (void)state;
    put_llama();
    c = mt_checkpoint_open(folder, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(mt_checkpoint_shards(c), 1);
    mt_census_make(&census, c, &quant);
    assert_string_equal(census.kind[0].label, "Q8_0");
    assert_true(census.kind[0].quantised);
    b = mt_binder_new(c, arena);
    assert_true(mt_bind_matrix(b, "layers.0.self_attn.q_proj", (size_t)HEADS * DIM, HIDDEN, &m));
    for (size_t r = 0; r < (size_t)HEADS * DIM; r++) { /* halves of a head stand in turns in the file */
        const float *row = (const float *)(const void *)(m.w + r * m.stride);

        assert_int_equal((int)row[3], 100 * (int)(r / DIM * DIM + r % (DIM / 2) * 2 + r % DIM / (DIM / 2)) + 3);
    }
    assert_true(mt_bind_matrix(b, "layers.0.self_attn.v_proj", DIM, HIDDEN, &m));
    assert_true(m.w == mt_checkpoint_find(c, "model.layers.0.self_attn.v_proj.weight")->data);
    assert_true(mt_binder_finish(b, NULL, &err));
    mt_checkpoint_close(c);
    mt_arena_free(arena);
}

/* Two key heads with three value heads each: in the file, the first value heads of both come first. */
static void put_recurrent(void)
{
    gguf_writer w = {0};
    const float rate[6] = {-1, -2, -4, -8, -16, -32}, norm[2] = {1.5f, 0.25f};

    put_sizes(&w, "qwen35");
    gguf_put_u32(&w, "qwen35.ssm.group_count", 2);
    gguf_put_u32(&w, "qwen35.ssm.time_step_rank", 6);
    gguf_put_u32(&w, "qwen35.ssm.state_size", 4);
    gguf_put_u32(&w, "qwen35.ssm.inner_size", 12);
    gguf_put_u32(&w, "qwen35.ssm.conv_kernel", 4);
    put_counted(&w, "token_embd.weight", 4, HIDDEN);
    put_vector(&w, "blk.0.ssm_a", rate, 6);
    put_vector(&w, "blk.0.attn_norm.weight", norm, 2);
    put_vector(&w, "blk.0.ssm_norm.weight", norm, 2);
    put_counted(&w, "blk.0.ssm_conv1d.weight", 28, 4);
    put_counted(&w, "blk.0.ssm_out.weight", 3, 12);
    put_file(&w, "model.gguf");
}

static void recurrent_layers_are_put_right(void **state)
{
    static const int tiled[6] = {0, 2, 4, 1, 3, 5}; /* where each value head is */
    mt_error err = {0};
    mt_arena *arena = mt_arena_new(0);
    mt_checkpoint *c;
    mt_binder *b;
    mt_mat m;
    const float *v;
    bool last = false;

    (void)state;
    put_recurrent();
    c = mt_checkpoint_open(folder, &err);
    assert_string_equal(err.text, "");
    b = mt_binder_new(c, arena);
    v = mt_bind_vector(b, "layers.0.linear_attn.A_log", 6);
    for (size_t i = 0; i < 6; i++)
        assert_true(v[i] == logf((float)(1 << tiled[i])));
    v = mt_bind_vector(b, "layers.0.input_layernorm", 2);
    assert_true(v[0] == 0.5f && v[1] == -0.75f);
    v = mt_bind_vector(b, "layers.0.linear_attn.norm", 2);
    assert_true(v[0] == 1.5f && v[1] == 0.25f);
    v = mt_bind_conv(b, "layers.0.linear_attn.conv1d", 28, 4, &last);
    assert_false(last);
    for (size_t i = 0; i < 28; i++) /* 16 channels of queries and keys come before the values */
        assert_int_equal((int)v[28 + i], 100 * (i < 16 ? (int)i : 16 + 2 * tiled[(i - 16) / 2] + (int)i % 2) + 1);
    assert_true(mt_bind_matrix(b, "layers.0.linear_attn.out_proj", 3, 12, &m));
    for (size_t i = 0; i < 12; i++)
        assert_int_equal((int)((const float *)(const void *)(m.w + m.stride))[i], 100 + 2 * tiled[i / 2] + (int)i % 2);
    assert_true(mt_binder_finish(b, NULL, &err));
    mt_checkpoint_close(c);
    mt_arena_free(arena);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(files_are_made_of_keys),
    IN_FOLDER(files_of_a_folder_are_its_own),
    IN_FOLDER(rows_are_put_in_order),
    IN_FOLDER(recurrent_layers_are_put_right),
};
UNIT_MAIN(tests)
