/* A web page can make a browser send requests to whatever the browser's machine reaches, this server included. Where
   API keys are needed that is harmless: the page knows none, and browsers send none by themselves. Without keys:

   1. A page may send a form or text anywhere; even though it cannot read the answer, it makes the server work. Browsers
      say in "origin" which page sends: one that is neither our own nor allowed by --cors is refused.
   2. A page may have its own name point to our address (DNS rebinding), and then has our origin as the browser sees it.
      It cannot change the name that the browser writes into "host": a name that is not ours is refused. Numeric
      addresses are accepted, since they cannot be made to point elsewhere. The check is left out over TLS, where the
      browser has checked the name against our certificate; on a socket file, which no browser opens; and where --cors
      allows every page.

   Programs other than browsers write what they like into both headers; API keys are for those. */
#include "server/calls/guard.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/host.h"

/* Whether a host matches a pattern of `len` bytes: a name, "*.NAME" for all names below it, or "*". */
static bool matches(const char *host, const char *pattern, size_t len)
{
    const size_t size = strlen(host);

    if (len > 0 && *pattern == '*') {
        pattern++;
        len--;
        return size >= len && strncasecmp(host + size - len, pattern, len) == 0;
    }
    return len > 0 && size == len && strncasecmp(host, pattern, len) == 0;
}

/* The same for a pattern that is a C string. */
static bool is(const char *host, const char *pattern)
{
    return matches(host, pattern, strlen(pattern));
}

static bool is_loopback(const mt_http_host *p)
{
    return p->address ? strncmp(p->name, "127.", 4) == 0 || strcmp(p->name, "::1") == 0
                      : is(p->name, "localhost") || is(p->name, "*.localhost");
}

/* Whether any pattern of a list matches; an item may have several: "a,b". */
static bool list_has(const mt_option_list *list, const char *host)
{
    for (size_t i = 0; i < list->count; i++)
        for (const char *at = list->at[i]; *at;) {
            const size_t len = strcspn(at, ",");

            if (matches(host, at, len))
                return true;
            at += len + (at[len] == ',');
        }
    return false;
}

/* Whether a name is one that this machine or the operator has for it: with its domain, in the local network, --host. */
static bool is_own(const mt_guard *guard, const char *host)
{
    char local[MT_GUARD_NAME + 8];

    snprintf(local, sizeof(local), "%s.local", guard->name);
    if (*guard->name && (is(host, guard->name) || is(host, local)))
        return true;
    if (guard->opt->host && is(host, guard->opt->host))
        return true;
    /* acquire: full was written before the flag was set */
    return atomic_load_explicit(&guard->full_is_known, memory_order_acquire) && is(host, guard->full);
}

static bool host_is_ours(const mt_guard *guard, const char *text)
{
    mt_http_host host;

    if (!mt_http_host_read(&host, text))
        return false;
    return host.address || is_loopback(&host) || is_own(guard, host.name) ||
           list_has(&guard->opt->allowed_hosts, host.name);
}

/* Whether a page of this origin ("https://name:port") is our own: of the host that is called, or both are this machine.
   A port that is not given is the usual one of the origin's scheme, on either side: a proxy may speak TLS for us. */
static bool page_is_ours(const char *origin, const char *called)
{
    const unsigned usual = strncmp(origin, "https:", 6) == 0 ? 443 : 80;
    const char *at = strstr(origin, "://");
    mt_http_host page, host;

    if (!at || !called || (strncmp(origin, "https://", 8) != 0 && strncmp(origin, "http://", 7) != 0))
        return false;
    if (strcasecmp(at + 3, called) == 0)
        return true;
    return mt_http_host_read(&page, at + 3) && mt_http_host_read(&host, called) && is_loopback(&page) &&
           is_loopback(&host) && (page.port ? page.port : usual) == (host.port ? host.port : usual);
}

/* Whether --cors allows pages of an origin; "*": pages of all. */
static bool page_is_named(const mt_guard *guard, const char *origin)
{
    for (size_t i = 0; i < guard->opt->origins.count; i++)
        if (strcmp(guard->opt->origins.at[i], "*") == 0 || strcmp(guard->opt->origins.at[i], origin) == 0)
            return true;
    return false;
}

bool mt_guard_admit(const mt_guard *guard, const mt_http_request *request, mt_http_refusal *refusal)
{
    const char *host = mt_http_request_header(request, "host"), *origin = mt_http_request_header(request, "origin");

    refusal->status = 403;
    if (guard->hosts && host && *host && !host_is_ours(guard, host)) {
        snprintf(refusal->text, sizeof(refusal->text),
                 "the host \"%.100s\" is not known to be this server: call it by its address, start it with "
                 "--allowed-host NAME (behind a proxy, too), or have it need a key (--api-key)",
                 host);
        return false;
    }
    if (guard->pages && origin && !page_is_ours(origin, host) && !page_is_named(guard, origin)) {
        snprintf(refusal->text, sizeof(refusal->text),
                 "pages of \"%.100s\" may not call this server: start it with --cors ORIGIN to let them, or have it "
                 "need a key (--api-key)",
                 origin);
        return false;
    }
    return true;
}

/* A value may be a list, "a,b". */
static bool check_names(const mt_option_list *list, mt_error *err)
{
    for (size_t i = 0; i < list->count; i++)
        if (!*list->at[i] || list->at[i][strcspn(list->at[i], ":/ \t")])
            return mt_fail(err, MT_E_INVALID,
                           "--allowed-host \"%s\" is not a name: give it without a scheme and a port, such as "
                           "llm.example, *.example, or * for all",
                           list->at[i]);
    return true;
}

bool mt_guard_init(mt_guard *guard, const mt_options *opt, bool keys, mt_error *err)
{
    const bool local = opt->host && strncmp(opt->host, "unix:", 5) == 0;

    *guard = (mt_guard){.opt = opt, .pages = !keys};
    atomic_init(&guard->full_is_known, false);
    guard->hosts = !keys && !local && !opt->tls_cert && !page_is_named(guard, "*");
    if (gethostname(guard->name, sizeof(guard->name) - 1))
        guard->name[0] = '\0';
    return check_names(&opt->allowed_hosts, err);
}

/* Not needed where only the loopback address is listened on: no client reaches that by the machine's full name. */
void mt_guard_resolve(mt_guard *guard)
{
    const struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *own = guard->opt->host ? guard->opt->host : "127.0.0.1";
    mt_http_host host;

    (void)!mt_http_host_read(&host, own); /* it is none where --host has an IPv6 address, without brackets */
    if (!guard->hosts || !*guard->name || is_loopback(&host) || strcmp(own, "::1") == 0 ||
        getaddrinfo(guard->name, NULL, &hints, &found))
        return;
    if (found && found->ai_canonname && strlen(found->ai_canonname) < sizeof(guard->full)) {
        memcpy(guard->full, found->ai_canonname, strlen(found->ai_canonname) + 1);
        atomic_store_explicit(&guard->full_is_known, true, memory_order_release); /* release: see is_own */
    }
    freeaddrinfo(found);
}
