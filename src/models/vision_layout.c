/* Where the rows of a tower's job belong (vision_layout.h). */
#include "models/vision_layout.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"

/* token of the square that holds a view's summary: the view's last square, whose first row is the summary */
#define NO_TOKEN UINT32_MAX
#define TABLE_SIDE 64 /* its square is MT_TABLE_PLACES */

void mt_vision_layout_init(mt_vision_layout *l, const mt_vision_spec *spec, size_t rows, size_t pages,
                           size_t slice_rows)
{
    l->spec = spec;
    l->cell = (size_t)spec->merge * spec->merge;
    l->shrink = 1;
    l->max_rows = rows;
    l->max_pages = pages;
    l->token = mt_alloc_array(rows / l->cell, sizeof(*l->token));
    if (spec->window) {
        l->window_from = mt_alloc_array(rows / l->cell, sizeof(*l->window_from));
        l->window_to = mt_alloc_array(rows / l->cell, sizeof(*l->window_to));
    }
    l->pages = mt_alloc_array(pages, sizeof(*l->pages));
    for (size_t i = 0; i < pages; i++)
        l->pages[i] = (uint32_t)i;
    l->pixels = mt_alloc_array(slice_rows, sizeof(*l->pixels));
    l->positions = mt_alloc_array(slice_rows, sizeof(*l->positions));
    l->spans = mt_alloc_array(slice_rows, sizeof(*l->spans));
    l->seen_from = mt_alloc_array(slice_rows, sizeof(*l->seen_from));
    l->seen = mt_alloc_array(slice_rows, sizeof(*l->seen));
    l->taps = spec->places                       ? 2
              : spec->spread == MT_SPREAD_SMOOTH ? (size_t)spec->table * spec->table
              : spec->spread == MT_SPREAD_CUBIC  ? 16
                                                 : 4;
    l->table_index = mt_alloc_array(l->taps * slice_rows, sizeof(*l->table_index));
    l->table_factor = mt_alloc_array(l->taps * slice_rows, sizeof(*l->table_factor));
    l->to = mt_alloc_array(slice_rows / (spec->squeezed ? MT_SQUEEZED : l->cell) + 1, sizeof(*l->to));
}

void mt_vision_layout_free(mt_vision_layout *l)
{
    mt_free(l->token);
    mt_free(l->window_from);
    mt_free(l->window_to);
    mt_free(l->pages);
    mt_free(l->pixels);
    mt_free(l->positions);
    mt_free(l->spans);
    mt_free(l->seen_from);
    mt_free(l->seen);
    mt_free(l->table_index);
    mt_free(l->table_factor);
    mt_free(l->to);
}

static mt_vision_item make_item(const mt_vision_layout *l, const mt_picture *p)
{
    const size_t rows = (size_t)p->height * p->width + (l->spec->summary ? l->cell : 0);
    return (mt_vision_item){
        .picture = p, .view_rows = rows, .view_pages = (rows + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS};
}

bool mt_vision_layout_fits(const mt_vision_layout *l, const mt_picture *const *pictures, size_t count)
{
    size_t rows = 0, pages = 0;
    for (size_t i = 0; i < count; i++) {
        const mt_vision_item item = make_item(l, pictures[i]);
        rows += pictures[i]->views * item.view_rows;
        pages += pictures[i]->views * item.view_pages;
    }
    return count <= MT_VISION_PICTURES && rows <= l->max_rows && pages <= l->max_pages;
}

/* Orders the squares of a view by windows: windows go from left to right and from the top down, and so do the squares
   in each. Windows at the border are smaller. */
static void order_by_window(mt_vision_layout *l, const mt_picture *p, size_t square, uint32_t token)
{
    const size_t height = p->height / l->spec->merge, width = p->width / l->spec->merge;
    const size_t side = l->spec->window / l->spec->merge, begin = square;
    for (size_t top = 0; top < height; top += side) {
        for (size_t left = 0; left < width; left += side) {
            const size_t bottom = MT_MIN(top + side, height), right = MT_MIN(left + side, width), first = square;
            for (size_t y = top; y < bottom; y++)
                for (size_t x = left; x < right; x++)
                    l->token[square++] = token + (uint32_t)(y * width + x);
            for (size_t i = first; i < square; i++) {
                l->window_from[i] = (uint32_t)((first - begin) * l->cell);
                l->window_to[i] = (uint32_t)((square - begin) * l->cell);
            }
        }
    }
}

void mt_vision_layout_begin(mt_vision_layout *l, const mt_picture *const *pictures, const uint32_t *const *to,
                            size_t count)
{
    size_t page = 0;
    l->rows = 0;
    l->items = count;
    for (size_t i = 0; i < count; i++) {
        mt_vision_item *item = &l->item[i];
        *item = make_item(l, pictures[i]);
        item->to = to[i];
        item->row = l->rows;
        item->page = page;
        const size_t squares = item->view_rows / l->cell - l->spec->summary;
        for (size_t view = 0; view < pictures[i]->views; view++) {
            const size_t square = (l->rows + view * item->view_rows) / l->cell;
            if (l->spec->summary)
                l->token[square + squares] = NO_TOKEN;
            if (l->spec->window)
                order_by_window(l, pictures[i], square, (uint32_t)(view * squares));
            for (size_t s = 0; !l->spec->window && s < squares; s++)
                l->token[square + s] = (uint32_t)(view * squares + s);
        }
        l->rows += pictures[i]->views * item->view_rows;
        page += pictures[i]->views * item->view_pages;
    }
}

static const mt_vision_item *item_of(const mt_vision_layout *l, size_t row)
{
    size_t i = 0;
    while (i + 1 < l->items && l->item[i + 1].row <= row)
        i++;
    return &l->item[i];
}

bool mt_vision_layout_is_summary(const mt_vision_layout *l, size_t row)
{
    return l->token[row / l->cell] == NO_TOKEN;
}

/* The patch's row and column in its view. */
static void place(const mt_vision_layout *l, const mt_vision_item *item, size_t row, uint32_t *y, uint32_t *x)
{
    const uint32_t merge = l->spec->merge, width = item->picture->width / merge;
    const uint32_t token = l->token[row / l->cell] % (width * (item->picture->height / merge));
    mt_picture_inner(merge, l->spec->squeezed, (uint32_t)(row % l->cell), y, x);
    *y += token / width * merge;
    *x += token % width * merge;
}

/* How many rows of a view are seen by its rows: not those that only fill the summary's square. */
static size_t seen_rows(const mt_vision_layout *l, const mt_vision_item *item)
{
    return item->view_rows - (l->spec->summary ? l->cell - 1 : 0);
}

static bool windowed(const mt_vision_layout *l, size_t layer)
{
    return l->spec->window && !l->spec->full[layer];
}

double mt_vision_layout_keys(const mt_vision_layout *l, size_t first, size_t rows, size_t layer)
{
    double keys = 0;
    for (size_t square = first / l->cell; square * l->cell < first + rows; square++)
        keys += (double)(windowed(l, layer) ? l->window_to[square] - l->window_from[square]
                                            : seen_rows(l, item_of(l, square * l->cell)));
    return keys * (double)l->cell;
}

void mt_vision_layout_pixels(mt_vision_layout *l, size_t first, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        const size_t row = first + i;
        const mt_picture *p = item_of(l, row)->picture;
        const size_t patch =
            mt_vision_layout_is_summary(l, row) ? 0 : l->token[row / l->cell] * l->cell + row % l->cell;
        l->pixels[i] = (mt_pixels){
            .bytes = p->patches + patch * p->patch_bytes, .levels = p->levels, .still = p->frames < l->spec->frames};
    }
}

/* Entries of a table of positions that count for a patch along one axis, and their weights. */
typedef struct taps {
    uint32_t entry[TABLE_SIDE];
    float share[TABLE_SIDE];
    size_t count;
} taps;

/* Two neighbours in a table of `side` entries and their weights, where `size` patches are spread over it from edge to
   edge. */
static void between(uint32_t at, uint32_t size, uint32_t side, taps *t)
{
    const float source = (float)at * (float)(side - 1) / (float)(size > 1 ? size - 1 : 1), whole = floorf(source);
    t->entry[0] = (uint32_t)whole < side ? (uint32_t)whole : side - 1;
    t->entry[1] = t->entry[0] + 1 < side ? t->entry[0] + 1 : side - 1;
    t->share[1] = source - whole;
    t->share[0] = 1 - t->share[1];
    t->count = 2;
}

/* All entries under a triangle around the patch's centre, two entries wide, or two patches where patches are larger. */
static void around(uint32_t at, uint32_t size, uint32_t side, taps *t)
{
    const float scale = (float)side / (float)size, wide = scale > 1 ? scale : 1, middle = scale * ((float)at + 0.5f);
    const float first = middle - wide + 0.5f, end = middle + wide + 0.5f;
    uint32_t entry = first > 0 ? (uint32_t)first : 0;
    float sum = 0;
    for (t->count = 0; entry < side && entry < (uint32_t)end; entry++, t->count++) {
        t->entry[t->count] = entry;
        t->share[t->count] = fmaxf(1 - fabsf(((float)entry - middle + 0.5f) * (1 / wide)), 0);
        sum += t->share[t->count];
    }
    for (size_t i = 0; i < t->count; i++)
        t->share[i] /= sum;
}

/* One row of the table of columns and one of the table of rows. */
static void factored(mt_vision_layout *l, size_t first, size_t rows)
{
    const uint32_t step = l->spec->places_interleaved ? 2 : 1,
                   second = l->spec->places_interleaved ? 1 : l->spec->places;
    for (size_t i = 0; i < rows; i++) {
        uint32_t y, x;
        place(l, item_of(l, first + i), first + i, &y, &x);
        l->table_index[2 * i] = x * step;
        l->table_index[2 * i + 1] = second + y * step;
    }
}

/* The entry that a share of the side falls into, computed in float as in torch. */
static void share_of(float share, uint32_t side, taps *t)
{
    uint32_t entry = 0;
    while (entry + 1 < side && (float)(1.0 / side + entry * (1.0 / side)) <= share)
        entry++;
    t->entry[0] = entry;
    t->share[0] = 1;
    t->count = 1;
}

static void steps(uint32_t at, uint32_t size, uint32_t side, taps *t)
{
    share_of(fminf((float)at * (1.0f / (float)size), 1.0f - 1e-6f), side, t);
}

static void shares(uint32_t at, uint32_t size, uint32_t side, taps *t)
{
    share_of((float)at / (float)size, side, t);
}

/* Four neighbours of the patch's centre, by cubic convolution. */
static void cubic(uint32_t at, uint32_t size, uint32_t side, taps *t)
{
    static const float a = -0.75f;
    const float to = ((float)at + 0.5f) / (float)size * 2 - 1, source = ((to + 1) * (float)side - 1) / 2;
    const float whole = floorf(source), x = source - whole;
    for (int i = 0; i < 4; i++) {
        const float apart = fabsf(x - (float)(i - 1));
        const int entry = (int)whole + i - 1, last = (int)side - 1;
        t->entry[i] = (uint32_t)(entry < 0 ? 0 : entry > last ? last : entry);
        t->share[i] = apart <= 1 ? ((a + 2) * apart - (a + 3)) * apart * apart + 1
                                 : ((a * apart - 5 * a) * apart + 8 * a) * apart - 4 * a;
    }
    t->count = 4;
}

void mt_vision_layout_table(mt_vision_layout *l, size_t first, size_t rows)
{
    if (l->spec->places) {
        factored(l, first, rows);
        return;
    }
    const uint32_t side = l->spec->table;
    static void (*const ways[])(uint32_t, uint32_t, uint32_t, taps *) = {[MT_SPREAD_ENDS] = between,
                                                                         [MT_SPREAD_STEPS] = steps,
                                                                         [MT_SPREAD_SHARES] = shares,
                                                                         [MT_SPREAD_CUBIC] = cubic,
                                                                         [MT_SPREAD_SMOOTH] = around};
    void (*const places)(uint32_t, uint32_t, uint32_t, taps *) = ways[l->spec->spread];
    for (size_t i = 0; i < rows; i++) {
        const mt_vision_item *item = item_of(l, first + i);
        uint32_t y, x, *index = l->table_index + l->taps * i;
        float *factor = l->table_factor + l->taps * i;
        taps rows_of, columns;
        place(l, item, first + i, &y, &x);
        places(y, item->picture->height, side, &rows_of);
        places(x, item->picture->width, side, &columns);
        for (size_t j = 0; j < l->taps; j++) {
            const size_t row = j / columns.count, column = j % columns.count;
            index[j] = row < rows_of.count ? rows_of.entry[row] * side + columns.entry[column] : 0;
            factor[j] = row < rows_of.count ? rows_of.share[row] * columns.share[column] : 0;
            if (mt_vision_layout_is_summary(l, first + i))
                factor[j] = 0;
        }
    }
}

static void add_span(mt_vision_layout *l, const mt_vision_item *item, size_t first, size_t row, size_t rows,
                     mt_batch *batch)
{
    const size_t begin = item->row / l->shrink, view_rows = item->view_rows / l->shrink;
    const size_t view = (row - begin) / view_rows;
    l->spans[batch->spans++] = (mt_span){.row = (uint32_t)(row - first),
                                         .rows = (uint32_t)rows,
                                         .position = (uint32_t)((row - begin) % view_rows),
                                         .pages = {l->pages + item->page + view * item->view_pages}};
}

/* Sets the range of rows that row number `at` of a view sees. */
static void look(mt_vision_layout *l, const mt_vision_item *item, size_t at, size_t square, size_t layer, size_t i)
{
    const bool window = windowed(l, layer);
    l->seen_from[i] = l->near ? (uint32_t)(at / MT_SQUEEZED * MT_SQUEEZED) : window ? l->window_from[square] : 0;
    l->seen[i] = l->near  ? l->seen_from[i] + MT_SQUEEZED
                 : window ? l->window_to[square]
                          : (uint32_t)(seen_rows(l, item) / l->shrink);
}

void mt_vision_layout_batch(mt_vision_layout *l, size_t first, size_t rows, size_t layer, mt_batch *batch)
{
    *batch = (mt_batch){
        .rows = rows, .positions = l->positions, .span = l->spans, .seen_from = l->seen_from, .seen = l->seen};
    for (size_t row = first; row < first + rows;) {
        const mt_vision_item *item = item_of(l, row * l->shrink);
        const size_t view_rows = item->view_rows / l->shrink, at = (row - item->row / l->shrink) % view_rows;
        const size_t count = MT_MIN(view_rows - at, first + rows - row);
        add_span(l, item, first, row, count, batch);
        for (size_t j = 0; j < count; j++, row++) {
            uint32_t y, x;
            place(l, item, row * l->shrink, &y, &x);
            l->positions[row - first] = (mt_position){{0, y, x}};
            look(l, item, at + j, row * l->shrink / l->cell, layer, row - first);
        }
    }
}

uint32_t mt_vision_layout_token(const mt_vision_layout *l, size_t square)
{
    return l->token[square] == NO_TOKEN ? MT_NO_PAGE : item_of(l, square * l->cell)->to[l->token[square]];
}
