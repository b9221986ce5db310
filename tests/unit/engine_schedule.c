/* The scheduler by traces: simulated time, simulated requests, thousands of steps in milliseconds. */
#include "unit.h"

#include <math.h>

#include "base/compiler.h"
#include "engine/schedule.h"

#define MOST 128

static mt_cost costs(void)
{
    mt_cost c = {.term = {0.010, 0.001, 0.001, 0.002}}; /* a step 10 ms, a row 1 ms, a row at depth 1024 2 ms more */
    return c;
}

static const mt_budget usual = {.rows = 256, .places = MOST, .alone = 0.12};

/* A model of 0.6 billion weights on two cores: a step 10 ms, a row 1.9, at depth 1024 one more. */
#define SMALL_MODEL                              \
    {                                            \
        .term = { 0.010, 0.0019, 0.0019, 0.001 } \
    }

/* Seconds of a step whose answers need so many alone. */
static double allowed(const mt_cost *cost, double answers)
{
    return fmax(fmin(MT_STEP_TIMES * answers, fmax(MT_STEP_HALF * answers, MT_STEP_SMOOTH)),
                MT_STEP_SECONDS + cost->term[2] * MT_COST_BLOCK / 2) +
           1e-9;
}

typedef struct job {
    mt_candidate c;
    double came, first, last, slowest; /* slowest: longest wait between two tokens */
    size_t prompt, tokens, wanted, done;
    bool here, ended;
} job;

typedef struct world {
    job job[MOST];
    size_t count;
    double now;
    mt_cost cost;
} world;

static void add(world *w, double when, size_t prompt, size_t wanted, int32_t priority)
{
    job *j = &w->job[w->count];
    *j = (job){.came = when, .prompt = prompt, .wanted = wanted, .first = -1};
    j->c.order = w->count++;
    j->c.priority = priority;
}

static void describe(job *j)
{
    j->c.left = j->tokens ? 1 : j->prompt - j->done;
    j->c.depth = j->done;
    j->c.most = 256;
    j->c.answering = j->tokens > 0;
    j->c.running = j->done > 0;
}

static void receive(job *j, double now)
{
    if (j->c.rows == 0)
        return;
    j->done += j->c.rows;
    if (j->done < j->prompt)
        return;
    if (j->tokens == 0)
        j->first = now;
    else if (now - j->last > j->slowest)
        j->slowest = now - j->last;
    j->last = now;
    j->tokens++;
    j->ended = j->tokens == j->wanted;
}

/* One step. Returns false when nobody is here. */
static bool step(world *w, const mt_budget *budget)
{
    mt_candidate *list[MOST], *order[MOST];
    size_t count = 0, rows = 0;
    double answers = w->cost.term[0];
    bool prompts = false, last = false;
    for (size_t i = 0; i < w->count; i++) {
        job *j = &w->job[i];
        if (j->ended || j->came > w->now)
            continue;
        describe(j);
        list[count++] = &j->c;
        prompts |= !j->c.answering;
        last |= j->c.last;
        if (j->c.answering)
            answers += w->cost.term[1] + w->cost.term[3] * (double)j->c.depth / 1024;
    }
    if (count == 0)
        return false;
    const double taken = mt_schedule(list, count, &w->cost, budget, order);
    for (size_t i = 0; i < count; i++) {
        rows += list[i]->rows;
        if (list[i]->answering)
            assert_int_equal(list[i]->rows, !list[i]->held); /* answers never wait but for prompts before batches */
        assert_true(list[i]->rows <= list[i]->left);
    }
    assert_true(rows > 0 && rows <= budget->rows); /* no idle step, and never too large a one */
    if (prompts && !last && answers > w->cost.term[0] && rows > 1 + count)
        assert_true(taken <= allowed(&w->cost, answers));
    w->now += taken;
    for (size_t i = 0; i < w->count; i++)
        if (!w->job[i].ended && w->job[i].came <= w->now - taken)
            receive(&w->job[i], w->now);
    return true;
}

static void run(world *w, const mt_budget *budget)
{
    for (size_t ended = 0, guard = 0; ended < w->count; guard++) {
        assert_true(guard < 100000);
        if (!step(w, budget))
            w->now += 0.001;
        ended = 0;
        for (size_t i = 0; i < w->count; i++)
            ended += w->job[i].ended;
    }
}

static void answers_keep_their_pace_beside_a_long_prompt(void **state)
{
    world w = {.cost = costs()};
    (void)state;
    add(&w, 0, 10, 200, 0);
    add(&w, 0.1, 8000, 2, 0);
    run(&w, &usual);
    assert_true(w.job[0].slowest < allowed(&w.cost, 0.010 + 0.001 + 0.002 * 210 / 1024));
}

/* What a step with answers may take: three times what they need alone, at most 100 ms or twice what they need, at least
   what nobody reads faster than; or what was asked for. The answers here need 10 and 30 ms. */
static void answers_leave_prompts_their_time(void **state)
{
    static const struct {
        double answers, asked, limit;
        size_t others; /* engines that share the device */
    } cases[] = {{0.010, 0, 0.050, 0},     {0.030, 0, 0.090, 0}, {0.001, 0, 0.050, 0},     {0.040, 0, 0.100, 0},
                 {0.060, 0, 0.120, 0},     {0.200, 0, 0.400, 0}, {0.010, 0.020, 0.020, 0}, {0.030, 0.200, 0.200, 0},
                 {0.050, 0.020, 0.050, 0}, {0.010, 0, 0.025, 1}, {0.030, 0, 0.045, 1},     {0.010, 0, 0.015, 4},
                 {0.030, 0, 0.045, 4},     {0.001, 0, 0.010, 4}};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const mt_cost cost = {.term = {cases[i].answers - 2e-6, 1e-6, 1e-6, 1e-9}};
        mt_candidate a = {.left = 1, .most = 1, .answering = true, .running = true}, b = a;
        mt_candidate prompt = {.left = 1 << 20, .most = 1 << 20, .running = true, .order = 1};
        mt_candidate *const list[] = {&a, &b, &prompt};
        mt_candidate *order[MT_COUNT(list)];
        mt_budget budget = usual;
        budget.rows = 1 << 20;
        budget.seconds = cases[i].asked;
        budget.others = cases[i].others;
        const double taken = mt_schedule(list, MT_COUNT(list), &cost, &budget, order);
        assert_true(a.rows == 1 && b.rows == 1 && prompt.rows > 0); /* a row in any case */
        assert_true(taken > cases[i].limit - 0.0001 && taken < cases[i].limit + 0.0001);
    }
}

/* Somebody may be answering elsewhere: a prompt takes no longer than those who answer leave it. */
static void a_prompt_leaves_other_engines_their_time(void **state)
{
    const mt_cost cost = {.term = {0.010, 1e-6, 1e-6, 1e-9}};
    mt_candidate prompt = {.left = 1 << 20, .most = 1 << 20, .running = true};
    mt_candidate *const list[] = {&prompt};
    mt_candidate *order[1];
    mt_budget budget = usual;
    (void)state;
    budget.rows = 1 << 20;
    assert_true(mt_schedule(list, 1, &cost, &budget, order) > 0.1);
    budget.others = 1;
    const double taken = mt_schedule(list, 1, &cost, &budget, order);
    assert_true(taken > 0.024 && taken < 0.026);
    budget.others = 3; /* a row takes 10 ms: in one and a half times the time of one there are two */
    mt_schedule(list, 1, &(mt_cost){.term = {0.010, 0.010, 0.010}}, &budget, order);
    assert_int_equal(prompt.rows, 2);
}

/* A step of prompts takes up to twice as long where the one that is soonest complete is complete with it, beside the
   oldest's share. A step takes 10 ms here, a row 1; with 120 ms there are 80 rows for it. */
static void a_prompt_is_completed_in_a_longer_step(void **state)
{
    static const struct {
        size_t left, most;
        double seconds; /* of steps with answers, which somebody asked for */
        bool complete;
    } cases[] = {{80, 256, 0, true},   {120, 256, 0, true},  {164, 256, 0, true}, {180, 256, 0, false},
                 {240, 256, 0, false}, {120, 100, 0, false}, {120, 256, 1, false}};
    const mt_cost cost = {.term = {0.010, 0.001, 0.001}};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        mt_candidate oldest = {.left = 4000, .most = 256, .running = true};
        mt_candidate soon = {.left = cases[i].left, .most = cases[i].most, .running = true, .order = 1};
        mt_candidate *const list[] = {&oldest, &soon};
        mt_candidate *order[MT_COUNT(list)];
        mt_budget budget = usual;
        budget.seconds = cases[i].seconds;
        const double taken = mt_schedule(list, MT_COUNT(list), &cost, &budget, order);
        assert_int_equal(soon.rows == soon.left, cases[i].complete);
        assert_true(taken <= (cases[i].complete ? 0.24 : 0.12) + 1e-9);
    }
}

/* A prompt of 2,048 tokens beside two streams: on a machine that computes one in 6.5 s alone, it is done in less than
   1.5 times as long, and the streams' tokens come at 15 a second or more. */
static void a_prompt_beside_streams_has_most_of_the_machine(void **state)
{
    world alone = {.cost = SMALL_MODEL}, w = {.cost = SMALL_MODEL};
    (void)state;
    add(&alone, 0, 2048, 2, 0);
    run(&alone, &usual);
    add(&w, 0, 64, 400, 0);
    add(&w, 0, 64, 400, 0);
    add(&w, 1, 2048, 2, 0);
    run(&w, &usual);
    const double first = w.job[2].first - w.job[2].came;
    assert_true(alone.job[0].first > 6 && alone.job[0].first < 7);
    assert_true(first > 1.2 * alone.job[0].first); /* the streams have their time, too */
    assert_true(first < 1.5 * alone.job[0].first);
    assert_true(w.job[2].last < w.job[0].last);
    for (size_t i = 0; i < 2; i++)
        assert_true(w.job[i].slowest < 1.0 / 15);
}

/* Requests of 128 to 383 tokens, each when the one before has ended, and lines of a batch for as long as these last.
   Returns the median of the times to the first token. */
static double median_first(size_t lines)
{
    enum { LIVE = 40 };
    world w = {.cost = SMALL_MODEL};
    double first[LIVE], when = 5;
    size_t order = MOST;
    for (size_t i = 0; i < LIVE; i++, when += 2.0 + 0.0137 * (double)(i * 29 % 40))
        add(&w, when, 128 + i * 97 % 256, 4, 0);
    for (size_t i = 0; i < lines; i++) {
        add(&w, 0, 200, 100000, 0);
        w.job[LIVE + i].c.last = true;
    }
    for (bool left = true; left;) {
        if (!step(&w, &usual))
            w.now += 0.001;
        left = false;
        for (size_t i = 0; i < LIVE; i++)
            left |= !w.job[i].ended;
        for (size_t i = LIVE; i < w.count; i++) /* another line begins */
            if (w.job[i].tokens > 100) {
                w.job[i].tokens = w.job[i].done = 0;
                w.job[i].c.order = order++;
            }
    }
    for (size_t i = 0; i < LIVE; i++) {
        const double took = w.job[i].first - w.job[i].came;
        size_t at = i;
        for (; at > 0 && first[at - 1] > took; at--)
            first[at] = first[at - 1];
        first[at] = took;
    }
    for (size_t i = LIVE; i < w.count; i++)
        assert_true(w.job[i].first > 0); /* the batch gets on */
    return first[LIVE / 2];
}

/* First tokens of requests come at most 1.2 times as late beside a batch, however many of its lines run. */
static void a_batch_does_not_delay_first_tokens(void **state)
{
    const double alone = median_first(0);
    (void)state;
    for (size_t lines = 1; lines <= 16; lines *= 2) {
        const double beside = median_first(lines);
        print_message("%zu lines: %.0f ms, %.0f ms without\n", lines, 1e3 * beside, 1e3 * alone);
        assert_true(beside < 1.2 * alone);
    }
}

/* While a prompt of others can go on, lines of a batch get no row, whether they answer or begin; beside answers of
   others they go on. */
static void lines_of_batches_wait_for_prompts(void **state)
{
    const mt_cost cost = costs();
    size_t seats = 0;
    mt_candidate line = {.left = 1, .most = 1, .answering = true, .running = true, .last = true},
                 begins = {.left = 50, .most = 50, .running = true, .last = true, .order = 1},
                 answer = {.left = 1, .most = 1, .answering = true, .running = true, .order = 2},
                 prompt = {.left = 50, .most = 50, .places = &seats, .order = 3};
    mt_candidate *const list[] = {&line, &begins, &answer, &prompt};
    mt_candidate *order[MT_COUNT(list)];
    mt_budget budget = usual;
    (void)state;
    mt_schedule(list, 3, &cost, &budget, order);
    assert_true(line.rows == 1 && begins.rows > 0 && answer.rows == 1);
    mt_schedule(list, 4, &cost, &budget, order); /* the prompt may take no seat */
    assert_true(line.rows == 1 && begins.rows > 0 && answer.rows == 1 && prompt.rows == 0);
    seats = 1;
    mt_schedule(list, 4, &cost, &budget, order);
    assert_true(line.rows == 0 && begins.rows == 0 && answer.rows == 1 && prompt.rows > 0);
    seats = 1;
    budget.together = true;
    mt_schedule(list, 4, &cost, &budget, order);
    assert_true(line.rows == 1 && answer.rows == 1);
}

/* A step of lines alone takes at most twice as long as their answers, or as one row. */
static void steps_of_batches_alone_are_short(void **state)
{
    const mt_cost cost = {.term = {0.010, 0.001, 0.001}};
    mt_candidate line = {.left = 1, .most = 1, .answering = true, .running = true, .last = true},
                 begins = {.left = 4000, .most = 256, .running = true, .last = true, .order = 1};
    mt_candidate *const list[] = {&begins, &line};
    mt_candidate *order[MT_COUNT(list)];
    (void)state;
    for (size_t count = 1; count <= MT_COUNT(list); count++) {
        assert_true(mt_schedule(list, count, &cost, &usual, order) <= 2 * 0.011 + 1e-9);
        assert_true(begins.rows > 0);
    }
}

/* Prompts of two clients beside a stream: who came first and who is soonest done both go on, and neither has all. */
static void prompts_beside_streams_share_what_is_left(void **state)
{
    world w = {.cost = SMALL_MODEL};
    (void)state;
    add(&w, 0, 64, 2000, 0);
    add(&w, 0.5, 4000, 2, 0);
    for (size_t i = 0; i < 10; i++)
        add(&w, 1 + (double)i, 100, 2, 0);
    run(&w, &usual);
    for (size_t i = 2; i < w.count; i++)
        assert_true(w.job[i].first - w.job[i].came < 1);
    world one = {.cost = SMALL_MODEL};
    add(&one, 0, 64, 2000, 0);
    add(&one, 0.5, 4000, 2, 0);
    run(&one, &usual);
    assert_true(w.job[1].first < one.job[1].first + 10 * 1); /* they have taken a second each, at most */
    assert_true(w.job[0].slowest < 1.0 / 15);
}

static void a_short_prompt_overtakes_a_long_one(void **state)
{
    world w = {.cost = costs()};
    (void)state;
    add(&w, 0, 8000, 2, 0);
    for (size_t i = 0; i < 20; i++)
        add(&w, 0.5 + 0.2 * (double)i, 20, 5, 0);
    run(&w, &usual);
    for (size_t i = 1; i <= 20; i++)
        assert_true(w.job[i].first - w.job[i].came < 0.25);
}

/* Short ones come faster than they can be served: the long one is done all the same. */
static void nobody_starves(void **state)
{
    world w = {.cost = costs()};
    (void)state;
    add(&w, 0, 2000, 2, 0);
    for (size_t i = 1; i < MOST; i++)
        add(&w, 0.12 * (double)i, 150, 3, 0);
    run(&w, &usual);
    double alone = 0.010 + 2000 * 0.001 + 2000.0 * 1000 / 1024 * 0.002, last = 0;
    for (size_t i = 1; i < MOST; i++)
        last = w.job[i].first > last ? w.job[i].first : last;
    assert_true(w.job[0].first < last);
    assert_true(w.job[0].first < 5 * alone);
}

static void priority_comes_first(void **state)
{
    world w = {.cost = costs()};
    (void)state;
    for (size_t i = 0; i < 10; i++)
        add(&w, 0, 300, 2, 5);
    add(&w, 0, 300, 2, -1);
    run(&w, &usual);
    for (size_t i = 0; i < 10; i++)
        assert_true(w.job[10].first <= w.job[i].first);
}

/* A quarter belongs to the oldest of the highest priority, not to one of a lower that came before it. */
static void the_oldest_is_one_of_the_highest_priority(void **state)
{
    mt_candidate soon = {.left = 2000, .most = 256, .order = 2, .running = true};
    mt_candidate oldest = {.left = 4000, .most = 256, .order = 1, .running = true};
    mt_candidate lower = {.left = 4000, .most = 256, .order = 0, .running = true, .priority = 5};
    mt_candidate *const all[] = {&lower, &oldest, &soon};
    mt_candidate *order[MT_COUNT(all)];
    const mt_cost cost = costs();
    (void)state;
    mt_schedule(all, MT_COUNT(all), &cost, &usual, order);
    assert_true(soon.rows > oldest.rows && oldest.rows > 0);
    assert_int_equal(lower.rows, 0);
}

/* Nor does it belong to one that has no seat. Who came first and is soonest done has all. */
static void the_oldest_can_go_on(void **state)
{
    mt_candidate waiting = {.left = 4000, .most = 256, .order = 0};
    mt_candidate oldest = {.left = 4000, .most = 256, .order = 1, .running = true};
    mt_candidate soon = {.left = 2000, .most = 256, .order = 2, .running = true};
    mt_candidate *const all[] = {&waiting, &oldest, &soon};
    mt_candidate *order[MT_COUNT(all)];
    const mt_cost cost = costs();
    mt_budget budget = usual;
    (void)state;
    budget.places = 0;
    mt_schedule(all, MT_COUNT(all), &cost, &budget, order);
    assert_true(soon.rows > oldest.rows && oldest.rows > 0);
    assert_int_equal(waiting.rows, 0);
    soon.order = 0;
    mt_schedule(all + 1, 2, &cost, &budget, order);
    assert_true(soon.rows > 0);
    assert_int_equal(oldest.rows, 0);
}

/* A quarter of 3 ms is no row, and two quarters are one. */
static void the_oldest_saves_its_share_up(void **state)
{
    mt_candidate answer = {.left = 1, .most = 1, .answering = true, .running = true};
    mt_candidate oldest = {.left = 4000, .most = 256, .order = 1, .running = true};
    mt_candidate soon = {.left = 2000, .most = 256, .order = 2, .running = true};
    mt_candidate *const all[] = {&answer, &oldest, &soon};
    mt_candidate *order[MT_COUNT(all)];
    const mt_cost cost = costs();
    mt_budget budget = usual;
    (void)state;
    budget.seconds = 0.0141;
    for (size_t i = 0; i < 2; i++) {
        mt_schedule(all, MT_COUNT(all), &cost, &budget, order);
        assert_int_equal(oldest.rows, i);
        assert_int_equal(soon.rows, 3 - i);
    }
}

static void equals_come_as_they_came(void **state)
{
    mt_candidate all[4], *list[4], *order[4];
    const mt_cost cost = costs();
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        all[i] = (mt_candidate){.left = 50, .most = 50, .order = i};
        list[3 - i] = &all[i];
    }
    mt_schedule(list, 4, &cost, &usual, order);
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(order[i], &all[i]);
}

/* A client that has had much comes after one that has had nothing. */
static void clients_take_turns(void **state)
{
    mt_candidate greedy = {.left = 50, .most = 50, .debt = 2, .order = 0};
    mt_candidate modest = {.left = 50, .most = 50, .debt = 0, .order = 1};
    mt_candidate *list[] = {&greedy, &modest}, *order[2];
    const mt_cost c = costs();
    (void)state;
    mt_schedule(list, 2, &c, &usual, order);
    assert_ptr_equal(order[0], &modest);
    assert_int_equal(modest.rows, 50);
    assert_true(greedy.rows > 0); /* and yet it goes on */
}

static void places_and_rows_are_kept(void **state)
{
    mt_candidate c[10], *list[10], *order[10];
    const mt_cost cost = costs();
    mt_budget budget = usual;
    size_t begun = 0, rows = 0;
    (void)state;
    budget.places = 3;
    budget.rows = 100;
    budget.alone = 100;
    for (size_t i = 0; i < 10; i++) {
        c[i] = (mt_candidate){.left = 20, .most = 20, .order = i};
        list[i] = &c[i];
    }
    mt_schedule(list, 10, &cost, &budget, order);
    for (size_t i = 0; i < 10; i++) {
        begun += c[i].rows > 0;
        rows += c[i].rows;
    }
    assert_int_equal(begun, 3);
    assert_int_equal(rows, 60);
}

/* Seats of a client are counted, and those it may not take are another's. */
static void clients_take_no_more_places_than_are_theirs(void **state)
{
    size_t left[] = {1, 2};
    mt_candidate c[10], *list[10], *order[10];
    const mt_cost cost = costs();
    mt_budget budget = usual;
    size_t begun[2] = {0};
    (void)state;
    budget.places = 4;
    budget.alone = 100;
    for (size_t i = 0; i < 10; i++) { /* the first client's are older, smaller and more important */
        c[i] = (mt_candidate){
            .left = i < 5 ? 5 : 20, .most = 20, .priority = i < 5 ? -1 : 0, .order = i, .places = &left[i / 5]};
        list[i] = &c[i];
    }
    mt_schedule(list, 10, &cost, &budget, order);
    for (size_t i = 0; i < 10; i++)
        begun[i / 5] += c[i].rows > 0;
    assert_int_equal(begun[0], 1);
    assert_int_equal(begun[1], 2);
    assert_int_equal(left[0] + left[1], 0);
    left[0] = 1;
    c[0].running = true;
    mt_schedule(list, 1, &cost, &budget, order);
    assert_int_equal(c[0].rows, 5);
    assert_int_equal(left[0], 1); /* it had its seat */
}

static void there_are_no_more_answers_than_rows(void **state)
{
    mt_candidate c[10], *list[10], *order[10];
    const mt_cost cost = costs();
    mt_budget budget = usual;
    (void)state;
    budget.rows = 4;
    for (size_t i = 0; i < 10; i++) {
        c[i] = (mt_candidate){.left = 1, .most = 1, .answering = true, .running = true, .order = i};
        list[i] = &c[i];
    }
    mt_schedule(list, 10, &cost, &budget, order);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(c[i].rows, i < 4);
}

/* A job's work shares the step with answers as rows of prompts do, and goes on until it is done. */
static void answers_keep_their_pace_beside_a_job(void **state)
{
    mt_candidate answer = {.left = 1, .most = 1, .answering = true, .running = true};
    mt_candidate picture = {.work = 2, .order = 1}, *list[] = {&answer, &picture}, *order[2];
    mt_cost cost = costs();
    size_t steps = 0;
    (void)state;
    for (; picture.work > 0; steps++) {
        const double taken = mt_schedule(list, 2, &cost, &usual, order);
        assert_int_equal(answer.rows, 1);
        assert_int_equal(picture.rows, 0);
        assert_true(picture.worked > 0 && picture.worked <= picture.work);
        assert_true(taken <= allowed(&cost, 0.011));
        picture.work -= picture.worked;
        if (picture.work < 1e-9)
            picture.work = 0;
    }
    assert_true((double)steps < 2 / ((allowed(&cost, 0.011) - 0.011)) + 2);
}

/* Answers that take all the time there is leave a job a little, unless a prompt has got that. */
static void a_job_gets_a_little_in_any_case(void **state)
{
    mt_candidate answer = {.left = 1, .most = 1, .answering = true, .running = true};
    mt_candidate prompt = {.left = 50, .most = 50, .running = true, .order = 1};
    mt_candidate picture = {.work = 2, .order = 2}, *list[] = {&answer, &picture, &prompt}, *order[3];
    const mt_cost cost = costs();
    mt_budget budget = usual;
    (void)state;
    budget.seconds = 0.001;
    mt_schedule(list, 2, &cost, &budget, order);
    assert_true(picture.worked > 0 && picture.worked < 1e-5);
    mt_schedule(list, 3, &cost, &budget, order);
    assert_int_equal(prompt.rows, 1);
    assert_true(picture.worked == 0);
    picture.order = 0; /* as the oldest it gets its share of what is less than a row */
    budget.seconds = 0.0114;
    mt_schedule(list, 3, &cost, &budget, order);
    assert_int_equal(prompt.rows, 0);
    assert_true(picture.worked > 0.0003);
}

static void a_short_prompt_overtakes_a_picture(void **state)
{
    mt_candidate picture = {.work = 2, .order = 0};
    mt_candidate brief = {.left = 20, .most = 20, .order = 1}, *list[] = {&picture, &brief}, *order[2];
    mt_cost cost = costs();
    (void)state;
    mt_schedule(list, 2, &cost, &usual, order);
    assert_int_equal(brief.rows, 20);
    assert_true(picture.worked > 0); /* as the oldest it has its share */
}

/* Whatever the budget, rows that belong together come together or not at all. */
static void what_is_solid_is_not_cut(void **state)
{
    mt_candidate answer = {.left = 1, .most = 1, .answering = true, .running = true};
    mt_candidate block = {.left = 300, .most = 256, .solid = 40, .solid_end = 104, .running = true, .order = 1};
    mt_candidate *list[] = {&answer, &block}, *order[2];
    const mt_cost cost = costs();
    mt_budget budget = usual;
    (void)state;
    for (size_t ms = 1; ms < 300; ms++) {
        budget.seconds = 0.001 * (double)ms;
        block.owed = 0;
        mt_schedule(list, 2, &cost, &budget, order);
        assert_true(block.rows > 0 && (block.rows <= 40 || block.rows >= 104));
    }
    block.solid = 0;
    block.solid_end = 64;
    budget.seconds = 0.001;
    mt_schedule(list, 2, &cost, &budget, order);
    assert_int_equal(block.rows, 64);
    budget.rows = 64; /* one of which is the answer's */
    mt_schedule(list, 2, &cost, &budget, order);
    assert_int_equal(block.rows, 0);
    budget.rows = 65;
    budget.seconds = 1;
    mt_schedule(list, 2, &cost, &budget, order);
    assert_int_equal(block.rows, 64);
}

static void what_jobs_take_is_learned(void **state)
{
    mt_rate r;
    (void)state;
    mt_rate_init(&r);
    for (int i = 0; i < 200; i++)
        mt_rate_learn(&r, 1e9 * (1 + i % 7), (i % 2 ? 0.009 : 0.011) * (1 + i % 7));
    assert_true(fabs(r.seconds - 1e-11) < 0.05e-11);
}

/* A block is filled where it has been begun: the ninth row costs what the twelfth does. */
static void rows_come_in_blocks(void **state)
{
    const mt_cost cost = {.term = {0.010, 0.001, 0.001, 1e-8}};
    mt_budget budget = usual;
    (void)state;
    for (size_t ms = 12; ms < 100; ms++) {
        mt_candidate answer = {.left = 1, .most = 1, .answering = true, .running = true}, other = answer;
        mt_candidate prompt = {.left = 300, .most = 256, .running = true, .order = 1};
        mt_candidate *const list[] = {&answer, &other, &prompt};
        mt_candidate *order[MT_COUNT(list)];
        budget.seconds = 0.0005 + 0.001 * (double)ms;
        mt_schedule(list, MT_COUNT(list), &cost, &budget, order);
        const size_t rows = 2 + prompt.rows, fit = ms - 10;
        assert_int_equal(rows, ms == 12 ? 3 : fit < MT_COST_FEW ? fit : fit / MT_COST_BLOCK * MT_COST_BLOCK);
    }
}

/* Steps of a machine that takes 2 ms a row up to eight, and as much a row in blocks of four beyond. */
static void the_cost_of_blocks_is_learned(void **state)
{
    mt_cost c;
    (void)state;
    mt_cost_init(&c, 1e9, 1e9, 0);
    for (int i = 0; i < 400; i++) {
        const size_t rows = (size_t)(1 + i * 37 % 60), beyond = rows > 8 ? (rows - 8 + 3) / 4 * 4 : 0;
        mt_cost_learn(&c, rows, 0, 0.010 + 0.002 * (double)(rows < 8 ? rows : 8) + 0.002 * (double)beyond);
    }
    assert_true(fabs(mt_cost_predict(&c, 12, 0) - mt_cost_predict(&c, 9, 0)) < 1e-9);
    assert_true(fabs(mt_cost_predict(&c, 12, 0) - 0.034) < 0.001);
    assert_true(fabs(mt_cost_predict(&c, 8, 0) - 0.026) < 0.001);
    assert_true(fabs(mt_cost_row(&c, 12, 0) - 0.002) < 0.0002);
}

static void costs_are_learned(void **state)
{
    mt_cost c;
    (void)state;
    mt_cost_init(&c, 1e9, 1e9, 0);
    for (int i = 0; i < 400; i++) {
        const size_t rows = (size_t)(1 + i * 37 % 200);
        const double positions = (double)rows * (double)(i * 91 % 4000);
        mt_cost_learn(&c, rows, positions, 0.003 + 0.0005 * (double)rows + 0.00001 * positions / 1024);
    }
    const double want = 0.003 + 0.0005 * 64 + 0.00001 * 64;
    assert_true(fabs(mt_cost_predict(&c, 64, 64 * 1024) - want) < 0.1 * want);
    assert_true(fabs(mt_cost_predict(&c, 1, 0) - 0.0035) < 0.1 * 0.0035);
}

/* A step of one row takes 11 ms here, a row more 1. */
static void guesses_get_rows_where_they_save_time(void **state)
{
    const mt_cost cost = costs();
    mt_candidate all[12] = {0}, *list[12], *order[12];
    (void)state;
    for (size_t i = 0; i < MT_COUNT(all); i++) {
        all[i] = (mt_candidate){
            .left = 1, .most = 256, .answering = true, .running = true, .order = i, .drafts = 8, .chance = 0.5};
        list[i] = &all[i];
    }
    mt_schedule(list, 1, &cost, &usual, order);
    assert_int_equal(all[0].rows,
                     1 + 2); /* 1.75 tokens in 13 ms: an eighth of one more in 1 ms would be fewer a second */
    all[0].chance = 0.05;
    mt_schedule(list, 1, &cost, &usual, order);
    assert_int_equal(all[0].rows, 1);
    all[0].chance = 1;
    mt_schedule(list, 1, &cost, &usual, order);
    assert_int_equal(all[0].rows, 1 + 8);
    all[0].chance = 0.5;
    mt_schedule(list, MT_COUNT(all), &cost, &usual, order); /* twelve share a step of 22 ms */
    for (size_t i = 0; i < MT_COUNT(all); i++)
        assert_int_equal(all[i].rows, 1);
    mt_budget tight = usual;
    tight.draft_all = true;
    tight.rows = 20;
    mt_schedule(list, MT_COUNT(all), &cost, &tight, order);
    size_t rows = 0;
    for (size_t i = 0; i < MT_COUNT(all); i++) {
        rows += all[i].rows;
        assert_true(all[i].rows >= 1 && all[i].rows <= 2); /* everybody's first before anybody's second */
    }
    assert_int_equal(rows, 20);
}

/* A GPU whose kernels for few rows end at 64. Seconds of a step. */
static double knee_seconds(size_t rows)
{
    return rows <= 64 ? 0.0022 + 0.000093 * (double)rows : fmax(0.012 + 0.000058 * (double)rows, 0.020);
}

/* Sets `count` answers with guesses in `all` and schedules them; returns the rows of the step. */
static size_t schedule_guesses(mt_candidate *all, size_t count, double chance, const mt_cost *cost, size_t guesses)
{
    mt_candidate *list[128], *order[128];
    mt_budget budget = usual;
    double positions = 0;
    size_t rows = 0;
    budget.rows = 2048;
    budget.guesses = guesses;
    assert_in_range(count, 1, 128);
    for (size_t i = 0; i < count; i++) {
        all[i] = (mt_candidate){
            .left = 1, .most = 256, .answering = true, .running = true, .order = i, .drafts = 8, .chance = chance};
        list[i] = &all[i];
    }
    const double taken = mt_schedule(list, count, cost, &budget, order);
    for (size_t i = 0; i < count; i++) {
        rows += all[i].rows;
        positions += (double)(all[i].rows * (all[i].rows - 1)) / 2;
    }
    assert_true(fabs(taken - mt_cost_predict(cost, rows, positions)) < 1e-9);
    return rows;
}

static void guesses_stay_below_the_knee(void **state)
{
    mt_candidate all[128];
    mt_cost cost = {.term = {0.0022, 80e-6, 80e-6, 0, 80e-6, 0.011}, .knee = 64};
    (void)state;
    assert_int_equal(schedule_guesses(all, 64, 0.75, &cost, 0), 64);
    assert_int_equal(schedule_guesses(all, 64, 0.95, &cost, 32), 64);
    assert_int_equal(schedule_guesses(all, 40, 0.75, &cost, 0), 64);
    for (size_t i = 0; i < 40; i++)
        assert_in_range(all[i].rows, 1, 2);
    assert_int_equal(schedule_guesses(all, 4, 0.1, &cost, 0), 4);
    assert_int_equal(schedule_guesses(all, 64, 1, &cost, 0), 64 * 9);   /* so many are worth it */
    assert_int_equal(schedule_guesses(all, 64, 1, &cost, 100), 64);     /* and no fewer */
    assert_int_equal(schedule_guesses(all, 100, 0.95, &cost, 32), 132); /* the answers are beyond it already */
    cost.term[5] = 1e-5;
    assert_int_equal(schedule_guesses(all, 64, 0.75, &cost, 32), 96);
    assert_int_equal(schedule_guesses(all, 40, 1, &cost, 30), 70); /* 24 of them up to the knee */
    cost.term[5] = 0.011;
    cost.knee = 0;
    assert_int_equal(schedule_guesses(all, 64, 0.75, &cost, 32), 96);
    assert_false(mt_schedule_worth(&(mt_cost){.term = {0.0022, 80e-6, 80e-6}, .knee = 64}, 0.9, 0, 64, 0.0075));
    assert_true(mt_schedule_worth(&(mt_cost){.term = {0.0022, 80e-6, 80e-6}, .knee = 64}, 0.9, 0, 63, 0.0075));
}

/* Guesses that are given up leave a prompt its rows. */
static void guesses_that_do_not_pay_take_nothing(void **state)
{
    const mt_cost cost = {.term = {0.0022, 80e-6, 80e-6, 0, 80e-6, 0.011}, .knee = 64};
    mt_candidate all[65], *list[65], *order[65];
    mt_budget budget = usual;
    (void)state;
    for (size_t i = 0; i < 64; i++) {
        all[i] = (mt_candidate){
            .left = 1, .most = 256, .answering = true, .running = true, .order = i, .drafts = 8, .chance = 0.95};
        list[i] = &all[i];
    }
    all[64] = (mt_candidate){.left = 10, .most = 10, .running = true, .order = 64};
    list[64] = &all[64];
    budget.rows = 74;
    budget.seconds = 1;
    mt_schedule(list, 65, &cost, &budget, order);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(all[i].rows, 1);
    assert_int_equal(all[64].rows, 10);
}

/* Tokens per second of so many answers, while what steps take is learned. Prompts come every now and then. */
static double rate_with(size_t answers, double chance)
{
    mt_candidate all[128];
    mt_cost cost;
    double seconds = 0, tokens = 0;
    mt_cost_init(&cost, 45e6, 45e6, 64);
    for (int i = 0; i < 1500; i++) {
        size_t rows = schedule_guesses(all, answers, chance, &cost, 32 + 64 - answers);
        double taken = knee_seconds(rows);
        for (size_t k = 0; i >= 500 && k < answers; k++) {
            double right = 1;
            for (size_t n = 0; n < all[k].rows; n++, right *= chance)
                tokens += right;
        }
        seconds += i >= 500 ? taken : 0;
        mt_cost_learn(&cost, rows, 0, taken);
        if (i % 50 < 5) {
            rows = answers + 512 + 300 * (size_t)(i % 3);
            mt_cost_learn(&cost, rows, 0, knee_seconds(rows));
        }
    }
    return tokens / seconds;
}

static void guesses_never_slow_answers_down(void **state)
{
    (void)state;
    for (size_t answers = 1; answers <= 64; answers += unit_quick() ? 21 : 3) {
        const double without = rate_with(answers, 0);
        for (int percent = 10; percent <= 90; percent += 20) {
            const double with = rate_with(answers, percent * 0.01);
            if (with < 0.97 * without)
                fail_msg("%zu answers, %d %%: %.0f tokens/s instead of %.0f", answers, percent, with, without);
        }
    }
    assert_true(rate_with(8, 0.7) > 1.2 * rate_with(8, 0));
}

/* Where a slice is told, a prompt gets it though the time is short, answers or not, and no more than it has. */
static void prompts_get_a_slice(void **state)
{
    const mt_cost cost = costs();
    mt_candidate prompt = {.left = 200, .most = 256, .depth = 8192}, answer = {.left = 1, .most = 1, .answering = true};
    mt_candidate *const both[] = {&answer, &prompt}, *order[2];
    mt_budget budget = usual;
    (void)state;
    answer.running = prompt.running = true;
    for (size_t count = 1; count <= 2; count++) {
        budget.slice = 0;
        mt_schedule(both + 2 - count, count, &cost, &budget, order);
        assert_in_range(prompt.rows, 1, 9);
        budget.slice = 64;
        mt_schedule(both + 2 - count, count, &cost, &budget, order);
        assert_in_range(prompt.rows, 60, 68);
        budget.slice = 500;
        mt_schedule(both + 2 - count, count, &cost, &budget, order);
        assert_int_equal(prompt.rows, 200);
    }
    mt_candidate picture = {.work = 1e-4}, other = {.left = 20, .most = 20, .depth = 8192, .running = true};
    mt_candidate *const jobs[] = {&picture, &prompt}, *const prompts[] = {&other, &prompt};
    budget.slice = 64;
    mt_schedule(jobs, 2, &cost, &budget, order); /* though a job comes before it */
    assert_in_range(prompt.rows, 60, 68);
    mt_schedule(prompts, 2, &cost, &budget, order); /* no more than the first of them has */
    assert_in_range(other.rows + prompt.rows, 16, 28);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(prompts_get_a_slice),
    cmocka_unit_test(a_prompt_is_completed_in_a_longer_step),
    cmocka_unit_test(the_oldest_saves_its_share_up),
    cmocka_unit_test(there_are_no_more_answers_than_rows),
    cmocka_unit_test(guesses_that_do_not_pay_take_nothing),
    cmocka_unit_test(guesses_stay_below_the_knee),
    cmocka_unit_test(guesses_never_slow_answers_down),
    cmocka_unit_test(answers_keep_their_pace_beside_a_long_prompt),
    cmocka_unit_test(answers_leave_prompts_their_time),
    cmocka_unit_test(a_prompt_leaves_other_engines_their_time),
    cmocka_unit_test(a_prompt_beside_streams_has_most_of_the_machine),
    cmocka_unit_test(a_batch_does_not_delay_first_tokens),
    cmocka_unit_test(lines_of_batches_wait_for_prompts),
    cmocka_unit_test(steps_of_batches_alone_are_short),
    cmocka_unit_test(prompts_beside_streams_share_what_is_left),
    cmocka_unit_test(a_short_prompt_overtakes_a_long_one),
    cmocka_unit_test(nobody_starves),
    cmocka_unit_test(priority_comes_first),
    cmocka_unit_test(the_oldest_is_one_of_the_highest_priority),
    cmocka_unit_test(the_oldest_can_go_on),
    cmocka_unit_test(equals_come_as_they_came),
    cmocka_unit_test(clients_take_turns),
    cmocka_unit_test(places_and_rows_are_kept),
    cmocka_unit_test(clients_take_no_more_places_than_are_theirs),
    cmocka_unit_test(answers_keep_their_pace_beside_a_job),
    cmocka_unit_test(a_job_gets_a_little_in_any_case),
    cmocka_unit_test(a_short_prompt_overtakes_a_picture),
    cmocka_unit_test(what_is_solid_is_not_cut),
    cmocka_unit_test(what_jobs_take_is_learned),
    cmocka_unit_test(rows_come_in_blocks),
    cmocka_unit_test(the_cost_of_blocks_is_learned),
    cmocka_unit_test(costs_are_learned),
    cmocka_unit_test(guesses_get_rows_where_they_save_time),
};

UNIT_MAIN(tests)
