/* Seats: as many sequences run side by side as there are seats, and clients share them.

   1. A free seat goes to the client with the fewest. Within a client, priority and arrival decide; between clients
      priorities do not count, or a client that gives itself the highest would have all seats.
   2. Where no seat is free, a client that has at least two fewer than another takes one from it at once: afterwards it
      has no more than the other, so the other does not take it back.
   3. A seat that cannot be divided (66 clients want 64) goes round: a sequence that has had it for a turn leaves it to
      a client that has fewer seats and less debt. A turn is turn_ms of answering, and at least as long as the sequence
      took to begin: so a sequence that must compute its prompt anew still gets on.
   4. Clients that are last (batches) have seats that no other client wants: by rule 1 they come after all others, and
      by rule 2 any other takes a seat from them at once. A step with a prompt of another client has no rows of theirs
      (schedule.h).
   5. A sequence that loses its seat goes back to the queue, as when pages run out: what it has computed stays in the
      prefix tree, and its answer is the same to the last bit. One seat changes hands at a time, between steps. */
#include "engine/inside.h"

#define LOOKED_AT 64 /* most waiting sequences that are considered for a step */

/* Counts each client's waiting sequences that could go on. */
static void count_eager(mt_engine *e, uint64_t now)
{
    for (size_t i = 0; i < e->clients.count; i++) {
        mt_client_record *g = &e->clients.client_record[i];
        g->debt = mt_client_record_debt(g, now);
        g->eager = g->places = g->looks = 0;
    }
    for (size_t i = e->waiting_count; i-- > 0;) {
        mt_client_record *g = e->waiting[i]->request->client_record;
        if (!mt_sequence_paused(e->waiting[i])) {
            g->eager++;
            g->first = i;
        }
    }
}

static bool turn_is_over(const mt_engine *e, const mt_sequence *s, uint64_t now)
{
    const uint64_t turn = (uint64_t)(e->params.turn_ms * 1e6), begins = s->answering - s->seated;
    return s->answering > 0 && now - s->answering > (begins > turn ? begins : turn);
}

/* Whether s leaves its seat to the client `to`: by rule 2, and where `turns`, by rule 3. */
static bool may_yield(const mt_engine *e, const mt_sequence *s, const mt_client_record *to, bool turns, uint64_t now)
{
    const mt_client_record *from = s->request->client_record;
    if (mt_client_record_compare(to, 1, from, -1) <= 0)
        return true;
    return turns && mt_client_record_compare(to, 0, from, 0) < 0 && to->debt < from->debt && turn_is_over(e, s, now);
}

/* Whether a rather than b loses its seat: the one whose client has more seats; of equals, where `debts`, the one whose
   client has more debt; then the youngest of the lowest priority. */
static bool yields_first(const mt_sequence *a, const mt_sequence *b, bool debts)
{
    const mt_client_record *x = a->request->client_record, *y = b->request->client_record;
    const int more = mt_client_record_compare(x, 0, y, 0);
    if (more != 0)
        return more > 0;
    return debts && x->debt != y->debt ? x->debt > y->debt : mt_sequence_before(b, a);
}

static mt_sequence *who_yields(const mt_engine *e, const mt_client_record *to, bool turns, uint64_t now)
{
    mt_sequence *first = NULL;
    for (size_t i = 0; i < e->running_count; i++) {
        mt_sequence *s = e->running[i];
        if (may_yield(e, s, to, turns, now) && (!first || yields_first(s, first, true)))
            first = s;
    }
    return first;
}

mt_sequence *mt_engine_victim(const mt_engine *e)
{
    mt_sequence *first = e->running[0];
    for (size_t i = 1; i < e->running_count; i++)
        if (yields_first(e->running[i], first, false))
            first = e->running[i];
    return first;
}

mt_sequence *mt_engine_yields_pages(const mt_engine *e, const mt_sequence *to, size_t pages)
{
    const mt_client_record *g = to->request->client_record;
    size_t gained = 0;
    for (size_t i = 0; i < e->running_count; i++) {
        const mt_seq *seq = &e->running[i]->seq;
        if (may_yield(e, e->running[i], g, false, 0))
            gained += seq->pages + mt_seq_wants(seq, seq->known);
    }
    return gained >= pages ? who_yields(e, g, false, 0) : NULL;
}

/* Sets how many waiting sequences of each client are considered: a client with many does not hide the others, and a
   client alone has LOOKED_AT. */
static void share_looks(mt_engine *e)
{
    size_t client_records = 0;
    for (size_t i = 0; i < e->clients.count; i++)
        client_records += e->clients.client_record[i].places > 0;
    for (size_t i = 0; i < e->clients.count; i++) {
        mt_client_record *g = &e->clients.client_record[i];
        if (g->places > 0)
            g->looks = g->places > LOOKED_AT / client_records ? g->places : LOOKED_AT / client_records;
    }
}

mt_sequence *mt_engine_share_seats(mt_engine *e, uint64_t now)
{
    size_t places = e->params.sequences - e->running_count;
    mt_sequence *yields = NULL;
    mt_client_record *g;
    if (e->waiting_count == 0)
        return NULL;
    count_eager(e, now);
    if (places == 0) {
        g = mt_clients_next(&e->clients);
        yields = g ? who_yields(e, g, true, now) : NULL;
        places = yields != NULL;
    }
    if (places > LOOKED_AT)
        places = LOOKED_AT;
    for (; places > 0 && (g = mt_clients_next(&e->clients)); places--)
        g->places++;
    share_looks(e);
    return yields;
}
