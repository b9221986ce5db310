#include "base/progress.h"

#include "base/clock.h"
#include "base/log.h"

#define SECOND UINT64_C(1000000000)
#define PATIENCE (SECOND / 2) /* nobody wonders before */
#define ON_TERMINAL (SECOND / 8)
#define IN_LOG (5 * SECOND)

static struct {
    void (*told)(void *ctx, const char *what, unsigned percent);
    void *ctx;
} watcher;

void mt_progress_watch(void (*told)(void *ctx, const char *what, unsigned percent), void *ctx)
{
    watcher.told = told;
    watcher.ctx = ctx;
}

void mt_progress_begin(mt_progress *p, const char *event, const char *what, uint64_t total)
{
    *p = (mt_progress){.event = event, .what = what, .total = total, .next = mt_clock_ns() + PATIENCE};
}

void mt_progress_add(mt_progress *p, uint64_t done)
{
    const uint64_t now = mt_clock_ns();
    unsigned percent;

    p->done += done < p->total - p->done ? done : p->total - p->done;
    if (now < p->next)
        return;
    p->next = now + (mt_log_on_terminal() ? ON_TERMINAL : IN_LOG);
    percent = p->total ? (unsigned)((double)p->done * 100 / (double)p->total) : 100;
    mt_log_passing(p->event, "%s: %u %%", p->what, percent);
    if (watcher.told)
        watcher.told(watcher.ctx, p->what, percent);
}

void mt_progress_end(void)
{
    mt_log_passed();
}
