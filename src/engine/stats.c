/* Histograms, and the sums over several engines (stats.h). */
#include "engine/stats.h"

double mt_histogram_bound(size_t bucket)
{
    static const double steps[3] = {1, 2, 5};
    double bound = steps[bucket % 3];
    for (size_t i = 0; i < bucket / 3; i++)
        bound *= 10;
    return bound;
}

/* unit: what bounds are multiplied by. The products are those that server/metrics/metrics.c publishes, so that 0.01 s
   counts as at most 0.01 however they are rounded. */
static void add(mt_histogram *h, double value, double unit)
{
    size_t i = 0;
    while (i < MT_HISTOGRAM_BUCKETS && value > mt_histogram_bound(i) * unit)
        i++;
    if (i < MT_HISTOGRAM_BUCKETS)
        h->bucket[i]++;
    h->count++;
    h->sum += value;
}

/* The buckets reach beyond an hour. */
void mt_histogram_add(mt_histogram *h, double seconds)
{
    add(h, seconds, MT_HISTOGRAM_SECONDS);
}

void mt_histogram_count(mt_histogram *h, uint64_t count)
{
    add(h, (double)count, 1);
}

void mt_histogram_join(mt_histogram *h, const mt_histogram *other)
{
    for (size_t i = 0; i < MT_HISTOGRAM_BUCKETS; i++)
        h->bucket[i] += other->bucket[i];
    h->count += other->count;
    h->sum += other->sum;
}

void mt_stats_join(mt_stats *s, const mt_stats *o)
{
#define JOIN(field) s->field += o->field;
    JOIN(repeated)
    JOIN(thinking_cut)
    JOIN(steps)
    JOIN(step_rows)
    JOIN(ahead_steps)
    JOIN(slow_steps)
    JOIN(step_seconds)
    JOIN(prompt_tokens)
    JOIN(cached_tokens)
    JOIN(generated_tokens)
    JOIN(lookups)
    JOIN(media_hits)
    JOIN(media_misses)
    JOIN(media_evictions)
    JOIN(encode_seconds)
    JOIN(encode_work)
    JOIN(evictions)
    JOIN(state_evictions)
    JOIN(preemptions)
    JOIN(yields)
    JOIN(drafts)
    JOIN(draft_tokens)
    JOIN(draft_accepted)
    JOIN(model_draft_tokens)
    JOIN(model_draft_accepted)
    JOIN(answer_steps)
    JOIN(canary_faults)
    JOIN(device_faults)
    JOIN(masks.asked)
    JOIN(masks.computed)
    JOIN(masks.computing_ns)
    JOIN(keep.stored_pages)
    JOIN(keep.stored_states)
    JOIN(keep.stored_features)
    JOIN(keep.skipped)
    JOIN(keep.restored_pages)
    JOIN(keep.restored_states)
    JOIN(keep.restored_features)
    JOIN(keep.failed)
    JOIN(host_store.written)
    JOIN(host_store.read)
    JOIN(host_store.evicted)
#undef JOIN
    for (size_t i = 0; i < MT_MISS_COUNT; i++)
        s->misses[i] += o->misses[i];
    for (size_t i = 0; i < MT_COUNT(s->finished); i++)
        s->finished[i] += o->finished[i];
    mt_histogram_join(&s->queue, &o->queue);
    mt_histogram_join(&s->prefill, &o->prefill);
    mt_histogram_join(&s->first_token, &o->first_token);
    mt_histogram_join(&s->inter_token, &o->inter_token);
    mt_histogram_join(&s->end_to_end, &o->end_to_end);
    mt_histogram_join(&s->step, &o->step);
    mt_histogram_join(&s->encode, &o->encode);
    mt_histogram_join(&s->inference, &o->inference);
    mt_histogram_join(&s->decode, &o->decode);
    mt_histogram_join(&s->token_pace, &o->token_pace);
    mt_histogram_join(&s->step_tokens, &o->step_tokens);
    mt_histogram_join(&s->answer_prompt, &o->answer_prompt);
    mt_histogram_join(&s->answer_computed, &o->answer_computed);
    mt_histogram_join(&s->answer_tokens, &o->answer_tokens);
    mt_histogram_join(&s->wanted_choices, &o->wanted_choices);
    mt_histogram_join(&s->wanted_tokens, &o->wanted_tokens);
}
