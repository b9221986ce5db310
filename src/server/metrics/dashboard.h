/* The dashboard's stream of events (GET /dashboard/events), which docs/dashboard.md describes. Only the io thread uses
   it. dashboard.c says how it works. */
#ifndef MT_SERVER_METRICS_DASHBOARD_H
#define MT_SERVER_METRICS_DASHBOARD_H

#include "api/random.h"
#include "base/error.h"
#include "engine/voices.h"
#include "http/http.h"
#include "server/calls/account.h"
#include "server/limits.h"
#include "server/metrics/pulse.h"

#define MT_DASHBOARD_ERRORS 64 /* how many of the latest errors are kept */

struct event; /* of libevent */
struct mt_server;
typedef struct mt_viewer mt_viewer;

/* An error that a call was answered with. */
typedef struct mt_fault {
    uint64_t at;           /* mt_clock_ns */
    char id[MT_RANDOM_ID]; /* of the call; the client's name for it, cut off, where it came to no call */
    int status;            /* of HTTP */
    char text[MT_LIMIT_ERROR_TEXT];
    const mt_account *account; /* whose call it was; lives as long as the server. NULL: the server needs no keys */
} mt_fault;

typedef struct mt_dashboard {
    mt_viewer *viewers; /* list of all clients that look at the dashboard */
    size_t count;       /* how many; at most MT_LIMIT_DASHBOARDS */
    struct event *tick; /* timer that writes to the viewers; pending while there is one */
    struct event *beat; /* timer that samples the pulse; always pending */
    mt_pulse pulse;     /* figures of each second of the last hour */
    /* Buffer for what is read of the recorder (engine/voices.h) at a time; allocated while there is a viewer */
    mt_voices_page page;
    mt_fault faults[MT_DASHBOARD_ERRORS]; /* a ring: number n is at n % MT_DASHBOARD_ERRORS */
    uint64_t fault_count;                 /* since the start */
} mt_dashboard;

/* Called once the engine runs. False: the event loop has no memory for the timers. */
bool mt_dashboard_open(struct mt_server *server) MT_NODISCARD;

/* Ends all streams and accepts no more. mt_dashboard_close frees everything, after the event loop has ended. */
void mt_dashboard_end(struct mt_server *server);
void mt_dashboard_close(struct mt_server *server);

/* Records an error for the dashboard: see mt_fault. Viewers are told of errors of the account they may see. */
void mt_dashboard_fault(struct mt_server *server, const mt_account *account, const char *id, int status,
                        const char *text);

/* GET /dashboard/events */
extern mt_http_handler mt_dashboard_get;

/* ---- what events say: dashboard_write.c ---- */

/* Appends what a snapshot says besides its lists: settings that do not change, and names of models. */
void mt_dashboard_write_head(struct mt_server *server, const mt_account *account, mt_buf *out);

/* Appends the lists "live", "ended" and "notes" of a page of the recorder, as far as the account may see them. */
void mt_dashboard_write_page(struct mt_server *server, const mt_account *account, const mt_voices_page *page,
                             mt_buf *out);

/* Appends the list "errors" from number *from on, and moves *from behind the last. */
void mt_dashboard_write_faults(struct mt_server *server, const mt_account *account, uint64_t *from, mt_buf *out);

#endif
