/* The two passes of resizing, included by resize.c once for integers and once for float; resize.c explains the macros.
   Inner loops run over LANES neighbouring numbers, so that compilers vectorise them. */

/* Computes the weights. Every operation is in REAL, as in the library whose results are reproduced. */
static void PASS(weigh)(taps *t, mt_resample resample)
{
    REAL scale = (REAL)t->in / (REAL)t->out, widened = scale < 1 ? 1 : scale, shrink = 1 / widened;
    REAL half = (REAL)0.5, reach = (REAL)filters[resample].support * widened;

    for (uint32_t i = 0; i < t->out; i++) {
        REAL center = ((REAL)i + half) * scale, sum = 0, *w = t->REALS + (size_t)i * t->most;
        int64_t first = (int64_t)(center - reach + half), last = (int64_t)(center + reach + half);

        first = first < 0 ? 0 : first;
        last = last > t->in ? t->in : last;
        t->first[i] = (uint32_t)first;
        t->count[i] = (uint32_t)(last - first);
        for (uint32_t k = 0; k < t->count[i]; k++)
            sum += w[k] = (REAL)filters[resample].weight((double)(((REAL)(k + first) - center + half) * shrink));
        for (uint32_t k = 0; k < t->count[i] && sum != 0; k++)
            w[k] /= sum;
    }
}

/* sums[lane] = start + the weighted sum of `count` samples, `step` apart, for LANES neighbours at once. */
static void PASS(sum)(SUM sums[LANES], const SAMPLE *in, size_t step, const SUM *weights, uint32_t count, SUM start)
{
    SUM kept[LANES];

    for (int lane = 0; lane < LANES; lane++)
        kept[lane] = start;
    for (uint32_t k = 0; k < count; k++, in += step)
        for (int lane = 0; lane < LANES; lane++)
            kept[lane] = PLUS(kept[lane], weights[k], (SUM)in[lane]);
    memcpy(sums, kept, sizeof(kept));
}

/* Transposes LANES rows from y on: byte i of all rows becomes neighbours. Where there are fewer rows, repeats the
   last. */
static void PASS(turn)(SAMPLE *out, const mt_image *in, uint32_t y)
{
    enum { TILE = 64 };
    size_t line = (size_t)in->width * 3;

    for (size_t begin = 0; begin < line; begin += TILE) {
        size_t end = line - begin < TILE ? line : begin + TILE;

        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint8_t *from = in->pixels + (y + lane < in->height ? y + lane : in->height - 1) * line;

            for (size_t i = begin; i < end; i++)
                out[i * LANES + lane] = from[i];
        }
    }
}

/* First pass: resizes each row to `width` pixels. out has as many rows as in. */
static void PASS(across)(SAMPLE *out, const mt_image *in, const taps *t, uint32_t width)
{
    SAMPLE *turned = mt_alloc((size_t)in->width * 3 * LANES * sizeof(*turned));
    size_t line = (size_t)width * 3;
    SUM sums[LANES];

    for (uint32_t y = 0; y < in->height; y += LANES) {
        uint32_t rows = in->height - y < LANES ? in->height - y : LANES;

        PASS(turn)(turned, in, y);
        for (size_t i = 0; i < line; i++) {
            size_t x = i / 3, at = (size_t)t->first[x] * 3 + i % 3;

            PASS(sum)(sums, turned + at * LANES, 3 * LANES, t->WEIGHTS + x * t->most, t->count[x], START(t));
            for (uint32_t row = 0; row < rows; row++)
                out[(y + row) * line + i] = TO_SAMPLE(sums[row], t);
        }
    }
    mt_free(turned);
}

/* Second pass: resizes each column. `in` has out's width; LANES numbers behind its end may be read. */
static void PASS(down)(mt_image *out, const SAMPLE *in, const taps *t)
{
    size_t line = (size_t)out->width * 3;
    SUM sums[LANES];

    for (uint32_t y = 0; y < out->height; y++) {
        uint8_t *row = out->pixels + y * line;

        for (size_t i = 0; i < line; i += LANES) {
            size_t count = line - i < LANES ? line - i : LANES;

            PASS(sum)(sums, in + t->first[y] * line + i, line, t->WEIGHTS + (size_t)y * t->most, t->count[y], START(t));
            for (size_t lane = 0; lane < count; lane++)
                row[i + lane] = TO_LEVEL(sums[lane], t);
        }
    }
}

static void PASS(resize)(mt_image *out, const mt_image *in, const taps *across, const taps *down)
{
    SAMPLE *middle = mt_alloc(((size_t)out->width * 3 * in->height + LANES) * sizeof(*middle));

    PASS(across)(middle, in, across, out->width);
    PASS(down)(out, middle, down);
    mt_free(middle);
}

#undef PASS
#undef REAL
#undef REALS
#undef SAMPLE
#undef SUM
#undef WEIGHTS
#undef START
#undef PLUS
#undef TO_SAMPLE
#undef TO_LEVEL
