/* The server that a command talks to: one that runs elsewhere, or one in a child process of its own, which is reached
   over a Unix socket. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/chat.h"
#include "cli/cli.h"
#include "server/server.h"

#define BOX "models/box"
/* between two questions to a starting server whether it is ready */
#define POLL_MS 100

/* Gets the name of the first model that the server lists. False: the server does not answer. */
static bool ask_model(mt_chat_server *server, mt_error *err)
{
    mt_buf body;
    json_t *list = NULL;
    const char *id;
    long status;

    mt_buf_init(&body, 1 << 20);
    status = mt_chat_get(server, "/v1/models", &body);
    if (status == 200)
        list = json_loads(body.data ? body.data : "", 0, NULL);
    id = json_string_value(json_object_get(json_array_get(json_object_get(list, "data"), 0), "id"));
    snprintf(server->model, sizeof(server->model), "%s", id ? id : "default");
    json_decref(list);
    mt_buf_free(&body);
    if (status == 401)
        return mt_fail(err, MT_E_INVALID, "the server at %s wants a key; give it with --api-key", server->url);
    return status != 0 || mt_fail(err, MT_E_IO, "no server answers at %s; is it running?", server->url);
}

/* Stores the URL, with a scheme and without "/v1" or a slash at the end. */
static void set_url(mt_chat_server *server, const char *url)
{
    size_t len = strlen(url);

    while (len > 0 && url[len - 1] == '/')
        len--;
    /* The base URL that clients of OpenAI's API are given ends so */
    if (len > 3 && strncmp(url + len - 3, "/v1", 3) == 0)
        len -= 3;
    snprintf(server->url, sizeof(server->url), "%s%.*s", mt_is_url(url) ? "" : "http://", (int)len, url);
}

/* The child process: serves until it is killed or its parent process ends. A process group of its own keeps Ctrl-C from
   ending it. */
static void serve(const mt_options *opt, const char *folder, const char *socket, pid_t parent)
{
    mt_options own = *opt;
    mt_error err = {0};
    char host[160];

    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* the parent ended before prctl */
        _exit(1);
#else
    (void)parent;
#endif
    snprintf(host, sizeof(host), "unix:%s", socket);
    own.dir = folder;
    own.host = host;
    own.drain_seconds = 0;
    own.api_keys.count = 0;
    if (mt_serve(&own, &err))
        _exit(0);
    fprintf(stderr, "motet: %s\n", err.text);
    _exit(1);
}

/* Waits until the child process is ready. The child prints its progress, and why it fails, to standard error. False: it
   failed, or the user pressed Ctrl-C. */
static bool wait_for(mt_chat_server *server, mt_error *err)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    mt_buf body;
    long status = 0;

    while (status != 200) {
        int how;

        if (waitpid(server->pid, &how, WNOHANG) == server->pid) {
            server->pid = 0;
            return mt_fail(err, MT_E_INVALID, "the model could not be loaded; see above");
        }
        nanosleep(&pause, NULL);
        if (mt_chat_interrupted())
            return mt_fail(err, MT_E_IO, "interrupted");
        mt_buf_init(&body, 1 << 16);
        status = mt_chat_get(server, "/ready", &body);
        mt_buf_free(&body);
    }
    return true;
}

static bool start(mt_chat_server *server, const mt_options *opt, const char *folder, mt_error *err)
{
    const pid_t own = getpid();

    snprintf(server->socket, sizeof(server->socket), "/tmp/motet-chat-%ld.sock", (long)own);
    snprintf(server->url, sizeof(server->url), "http://motet");
    server->key = NULL;
    fflush(NULL);
    server->pid = fork();
    if (server->pid < 0) {
        server->pid = 0;
        return mt_fail(err, MT_E_IO, "a process for the model cannot be started: %s", strerror(errno));
    }
    if (server->pid == 0)
        serve(opt, folder, server->socket, own);
    return wait_for(server, err) && ask_model(server, err);
}

bool mt_chat_server_reach(mt_chat_server *server, const char *url, mt_error *err)
{
    set_url(server, url);
    return ask_model(server, err);
}

bool mt_chat_server_open(mt_chat_server *server, const mt_options *opt, mt_error *err)
{
    struct stat st;

    *server =
        (mt_chat_server){.key = opt->api_keys.count ? opt->api_keys.at[0] : NULL, .settings = mt_chat_settings(opt)};
    if (opt->dir && !mt_is_url(opt->dir) && !mt_is_address(opt->dir))
        return start(server, opt, opt->dir, err);
    if (mt_chat_server_reach(server, opt->dir ? opt->dir : MT_CHAT_USUAL_URL, err))
        return true;
    if (opt->dir)
        return false;
    if (stat(BOX "/config.json", &st) == 0)
        return start(server, opt, BOX, err);
    return mt_fail(err, MT_E_NOT_FOUND,
                   "no server answers at " MT_CHAT_USUAL_URL " and there is no \"" BOX
                   "\" here; give a folder, a model's name or a "
                   "URL");
}

/* Kills the child process at once: nothing of it is needed any more, and while it loads it would not end soon. */
void mt_chat_server_close(mt_chat_server *server)
{
    json_decref(server->settings);
    server->settings = NULL;
    if (!server->pid)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    unlink(server->socket);
    server->pid = 0;
}
