/* Encoders: what of a config is refused and how, and that slices and company change no bit. */
#include "folder.h"
#include "unit.h"

#include <math.h>

#include "base/alloc.h"
#include "models/bert.h"

#define FOLDER "tests/oracle/vectors/"
#define GOOD                                                                                 \
    "\"model_type\":\"bert\",\"vocab_size\":100,\"hidden_size\":32,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":4,\"intermediate_size\":64"

/* The spec's lists are gone with the arena. */
static bool read_spec(const char *json, mt_bert_spec *spec, mt_error *err)
{
    mt_config *config = mt_config_parse(json, strlen(json), err);
    mt_arena *arena = mt_arena_new(0);
    assert_non_null(config);
    const bool ok = mt_bert_spec_read(spec, config, arena, err);
    mt_arena_free(arena);
    mt_config_free(config);
    return ok;
}

static void configs_become_specs(void **state)
{
    mt_bert_spec spec;
    mt_error err = {0};
    (void)state;
    assert_true(read_spec("{" GOOD "}", &spec, &err));
    assert_true(!spec.roberta && spec.labels == 0 && spec.context == 512 && spec.head_dim == 8);
    assert_int_equal(spec.activation, MT_ACT_GELU);
    assert_true(read_spec("{" GOOD ",\"model_type\":\"xlm-roberta\",\"max_position_embeddings\":514}", &spec, &err));
    assert_true(spec.roberta && spec.pad == 1 && spec.context == 512);
    assert_true(read_spec("{" GOOD ",\"architectures\":[\"BertForSequenceClassification\"],\"id2label\":{\"0\":\"x\"}}",
                          &spec, &err));
    assert_true(spec.labels == 1 && spec.two_types);
    assert_true(read_spec("{" GOOD ",\"architectures\":[\"BertForSequenceClassification\"]}", &spec, &err));
    assert_true(spec.labels == 2 && mt_bert_width(&spec) == 2);
    assert_true(read_spec("{" GOOD ",\"model_type\":\"roberta\",\"type_vocab_size\":2}", &spec, &err));
    assert_false(spec.two_types);
}

/* An empty config of each family has the shape that its class in transformers has. */
static void defaults_are_those_of_the_classes(void **state)
{
    static const struct {
        const char *json;
        uint32_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context, reach, types;
        mt_activation act;
    } cases[] = {
        {"{\"model_type\":\"modernbert\"}", 50368, 768, 22, 12, 12, 64, 1152, 8192, 64, 0, MT_ACT_GELU},
        {"{\"model_type\":\"nomic_bert\"}", 30528, 768, 12, 12, 12, 64, 3072, 2048, 0, 2, MT_ACT_SILU},
        {"{\"model_type\":\"eurobert\"}", 128256, 768, 12, 12, 12, 64, 3072, 8192, 0, 0, MT_ACT_SILU},
        {"{\"model_type\":\"gemma3_text\",\"use_bidirectional_attention\":true}", 262208, 2304, 26, 8, 4, 256, 9216,
         65536, 2048, 0, MT_ACT_GELU_TANH},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_bert_spec s;
        mt_error err = {0};
        if (!read_spec(cases[i].json, &s, &err))
            fail_msg("%s: %s", cases[i].json, err.text);
        assert_int_equal(s.vocab, cases[i].vocab);
        assert_int_equal(s.hidden, cases[i].hidden);
        assert_int_equal(s.layers, cases[i].layers);
        assert_int_equal(s.heads, cases[i].heads);
        assert_int_equal(s.kv_heads, cases[i].kv_heads);
        assert_int_equal(s.head_dim, cases[i].head_dim);
        assert_int_equal(s.ffn, cases[i].ffn);
        assert_int_equal(s.context, cases[i].context);
        assert_int_equal(s.reach, cases[i].reach);
        assert_int_equal(s.types, cases[i].types);
        assert_int_equal(s.activation, cases[i].act);
    }
}

static void what_is_not_known_is_refused_in_a_sentence(void **state)
{
    static const struct {
        const char *json, *words;
    } cases[] = {
        {"{\"model_type\":\"bert\"}", "vocab_size"},
        {"{" GOOD ",\"num_attention_heads\":5}", "which 5 heads cannot share"},
        {"{" GOOD ",\"hidden_size\":0}", "hidden_size"},
        {"{" GOOD ",\"hidden_act\":\"glu\"}", "\"hidden_act\" is \"glu\""},
        {"{" GOOD ",\"position_embedding_type\":\"relative_key\"}", "known is absolute"},
        {"{" GOOD ",\"is_decoder\":true}", "known are encoders"},
        {"{" GOOD ",\"max_position_embeddings\":9000000}", "max_position_embeddings"},
        {"{" GOOD ",\"pad_token_id\":100}", "pad_token_id"},
        {"{" GOOD ",\"model_type\":\"roberta\",\"max_position_embeddings\":2}", "leaves no position"},
        {"{\"model_type\":\"modernbert\",\"num_attention_heads\":7000}", "which 7000 heads cannot share"},
        {"{\"model_type\":\"modernbert\",\"layer_types\":[\"full_attention\"]}", "how layer 1 of 22 sees"},
        {"{\"model_type\":\"modernbert\",\"classifier_pooling\":\"late\"}", "\"classifier_pooling\" is \"late\""},
        {"{\"model_type\":\"eurobert\",\"hidden_act\":\"tanh\"}", "\"hidden_act\" is \"tanh\""},
        {"{\"model_type\":\"gemma3_text\",\"use_bidirectional_attention\":true,"
         "\"architectures\":[\"Gemma3ForSequenceClassification\"]}",
         "known are Gemma encoders that make embeddings"},
        {"{" GOOD ",\"architectures\":[\"BertForSequenceClassification\"],\"id2label\":{}}", "has no labels"},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_bert_spec spec;
        mt_error err = {0};
        if (read_spec(cases[i].json, &spec, &err) || !strstr(err.text, cases[i].words))
            fail_msg("%s: \"%s\"", cases[i].json, err.text);
    }
}

typedef struct opened {
    mt_arena *arena;
    mt_checkpoint *checkpoint;
    mt_device *dev;
    mt_bert_spec spec;
    mt_bert_weights weights;
    mt_bert *bert;
} opened;

static void open_bert(opened *o, const char *dir, size_t slice, size_t threads)
{
    const mt_device_params params = {
        .name = unit_device(), .host = {.threads = threads, .cpu_mask = ~0u}, .precision = MT_PRECISION_FAST};
    mt_error err = {0};
    o->arena = mt_arena_new(0);
    o->checkpoint = mt_checkpoint_open(dir, &err);
    assert_non_null(o->checkpoint);
    o->dev = mt_device_open(&params, &err);
    assert_non_null(o->dev);
    if (!mt_bert_spec_read(&o->spec, mt_checkpoint_config(o->checkpoint), o->arena, &err) ||
        !mt_bert_bind(&o->weights, &o->spec, o->checkpoint, o->arena, &err))
        fail_msg("%s", err.text);
    o->bert = mt_bert_new(o->dev, &o->spec, &o->weights, &(mt_bert_params){.rows = 1024, .slice = slice}, &err);
    assert_non_null(o->bert);
    assert_true(mt_device_plan(o->dev, slice, &err));
}

static void close_bert(opened *o)
{
    mt_bert_free(o->bert);
    mt_device_close(o->dev);
    mt_checkpoint_close(o->checkpoint);
    mt_arena_free(o->arena);
}

/* The hidden states of the last of some texts. */
static void run(opened *o, const mt_bert_text *texts, size_t count, double budget, float *out)
{
    const size_t width = o->spec.hidden, last = count - 1;
    mt_cursor *cursor = mt_bert_cursor(o->bert);
    double spent = 0;
    mt_bert_begin(o->bert, texts, count);
    const double promised = mt_cursor_left(cursor);
    while (mt_cursor_left(cursor) > 0)
        spent += mt_cursor_run(cursor, budget);
    assert_true(fabs(spent - promised) <= 1e-9 * promised);
    for (size_t i = 0; i < texts[last].count; i++)
        memcpy(out + i * width, mt_bert_hidden(o->bert, last, i), width * sizeof(*out));
}

static void slices_threads_and_company_change_no_bit(void **state)
{
    enum { LONG = 300, SHORT = 37 };
    static const char *const folders[] = {FOLDER "bert-cls-bf16", FOLDER "xlmr-mean-bf16", FOLDER "bert-mean-f32",
                                          FOLDER "modernbert-mean-f32", FOLDER "embeddinggemma-bf16"};
    static const size_t slices[] = {128, 1, 7, 300};
    static const double budgets[] = {INFINITY, 0, 1e5, 1e6};
    static float first[LONG * 32], other[LONG * 32];
    uint32_t tokens[2][LONG];
    (void)state;
    for (size_t i = 0; i < 2 * LONG; i++)
        tokens[i / LONG][i % LONG] = (uint32_t)(i * 7919 % 90);
    const mt_bert_text text = {.tokens = tokens[0], .count = LONG};
    const mt_bert_text company[] = {{.tokens = tokens[1], .count = SHORT, .second = 5},
                                    {.tokens = tokens[1], .count = LONG},
                                    {.tokens = tokens[1], .count = 1},
                                    text};
    for (size_t f = 0; f < MT_COUNT(folders); f++)
        for (size_t s = 0; s < MT_COUNT(slices); s++) {
            opened o;
            open_bert(&o, folders[f], slices[s], 1 + s % 2);
            run(&o, &text, 1, budgets[s], s == 0 ? first : other);
            if (s > 0)
                assert_memory_equal(first, other, sizeof(first));
            run(&o, company, MT_COUNT(company), budgets[s], other);
            assert_memory_equal(first, other, sizeof(first));
            close_bert(&o);
        }
}

/* Renames the tensors of a copy; what is shorter is filled up, so that the header keeps its length. */
static void rename_norms(void)
{
    char command[512];
    snprintf(command, sizeof(command),
             "cp " FOLDER "bert-cls-bf16/config.json %s && sed 's/LayerNorm.weight\"/LayerNorm.gamma\" /g; "
             "s/LayerNorm.bias\"/LayerNorm.beta\"/g' " FOLDER "bert-cls-bf16/model.safetensors > %s/model.safetensors",
             folder, folder);
    assert_int_equal(system(command), 0);
}

static void norms_may_have_their_old_names(void **state)
{
    static float first[64 * 32], other[64 * 32];
    uint32_t tokens[64];
    (void)state;
    for (uint32_t i = 0; i < 64; i++)
        tokens[i] = i + 5;
    const mt_bert_text text = {.tokens = tokens, .count = 64};
    rename_norms();
    for (size_t i = 0; i < 2; i++) {
        opened o;
        open_bert(&o, i ? folder : FOLDER "bert-cls-bf16", 16, 1);
        run(&o, &text, 1, INFINITY, i ? other : first);
        close_bert(&o);
    }
    assert_memory_equal(first, other, sizeof(first));
}

/* A job that is dropped in the middle leaves nothing behind. */
static void a_job_may_be_dropped(void **state)
{
    static float first[64 * 32], other[64 * 32];
    uint32_t tokens[64];
    opened o;
    (void)state;
    open_bert(&o, FOLDER "bert-cls-bf16", 16, 1);
    for (uint32_t i = 0; i < 64; i++)
        tokens[i] = i + 5;
    const mt_bert_text text = {.tokens = tokens, .count = 64}, half = {.tokens = tokens + 32, .count = 32};
    mt_cursor *cursor = mt_bert_cursor(o.bert);
    run(&o, &text, 1, INFINITY, first);
    mt_bert_begin(o.bert, &half, 1);
    for (size_t i = 0; i < 5; i++)
        assert_true(mt_cursor_run(cursor, 0) > 0);
    mt_cursor_drop(cursor);
    assert_true(mt_cursor_left(cursor) == 0 && mt_cursor_run(cursor, 1e9) == 0);
    run(&o, &text, 1, INFINITY, other);
    assert_memory_equal(first, other, sizeof(first));
    close_bert(&o);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(configs_become_specs),
    cmocka_unit_test(defaults_are_those_of_the_classes),
    cmocka_unit_test(what_is_not_known_is_refused_in_a_sentence),
    cmocka_unit_test(slices_threads_and_company_change_no_bit),
    cmocka_unit_test_setup_teardown(norms_may_have_their_old_names, make_folder, remove_folder),
    cmocka_unit_test(a_job_may_be_dropped),
};

UNIT_MAIN(tests)
