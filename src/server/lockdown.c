/* Which files a server may open from here on; the kernel refuses all others, whatever a bug or a client makes the
   server try.

   A rule is about the file that a path named when the rule was made. So files that may be replaced while the server
   runs (keys, certificates, the resolver's) are allowed by their folder, and so are the targets of links. */
#include "server/lockdown.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/confine.h"
#include "base/crash.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "hub/names.h"
#include "hub/stores.h"
#include "weights/gguf_place.h"

enum { DEPTH = 3 }; /* how deep folders of models are searched for links */

typedef struct list {
    mt_arena *arena;
    mt_confine_path *at;
    size_t count, cap;
} list;

static unsigned done;

unsigned mt_lockdown_done(void)
{
    return done;
}

/* Allows a path, unless it is allowed already. */
static void add(list *l, const char *path, bool write)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->at[i].path, path) == 0 && l->at[i].write >= write)
            return;
    l->at = mt_grow(l->at, &l->cap, l->count + 1, sizeof(*l->at));
    l->at[l->count++] = (mt_confine_path){.path = mt_arena_strdup(l->arena, path), .write = write};
}

/* Allows the folder that a path is in. */
static void add_parent(list *l, const char *path, bool write)
{
    char folder[MT_LIMIT_PATH];
    char *slash;

    if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
        return;
    slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0'; /* of "/file" the slash stays */
    add(l, slash ? folder : ".", write);
}

/* Allows a file that may be replaced, by its folder, and by that of its target where it is a link. path may be NULL. */
static void add_file(list *l, const char *path, bool write)
{
    char real[PATH_MAX];

    if (!path)
        return;
    add_parent(l, path, write);
    if (realpath(path, real))
        add_parent(l, real, write);
}

/* Allows a folder. One that is to be written is made first, since rules are about what exists. path may be NULL. */
static void add_folder(list *l, const char *path, bool write)
{
    if (!path)
        return;
    if (write && access(path, F_OK) != 0)
        (void)!mt_file_make_folder(path); /* an error shows when the folder is used */
    add(l, path, write);
}

/* Allows the target of a link. */
static void add_target(list *l, const char *path)
{
    char real[PATH_MAX];
    struct stat info;

    if (!realpath(path, real))
        return;
    if (stat(real, &info) == 0 && S_ISDIR(info.st_mode))
        add(l, real, false);
    else
        add_parent(l, real, false);
}

/* Allows the targets of all links below a folder of models. */
static void add_links(list *l, const char *path, size_t depth)
{
    DIR *folder = depth > 0 ? opendir(path) : NULL;

    for (struct dirent *e; folder && (e = readdir(folder));) {
        char inner[MT_LIMIT_PATH];
        struct stat info;

        if (e->d_name[0] == '.' || !mt_hub_join(inner, path, e->d_name) || lstat(inner, &info) != 0)
            continue;
        if (S_ISLNK(info.st_mode))
            add_target(l, inner);
        else if (S_ISDIR(info.st_mode))
            add_links(l, inner, depth - 1);
    }
    if (folder)
        closedir(folder);
}

/* Allows what the C library, OpenSSL, libcurl and the count of processors need. */
static void add_system(list *l)
{
    static const char *const paths[] = {"/etc",
                                        "/usr",
                                        "/lib",
                                        "/lib64",
                                        "/proc",
                                        "/sys",
                                        "/nix/store",
                                        "/gnu/store",
                                        "/dev/urandom",
                                        "/dev/random",
                                        "/run/systemd/resolve",
                                        "/run/NetworkManager",
                                        "/run/resolvconf",
                                        "/run/nscd"};
    static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "OPENSSL_CONF"};

    for (size_t i = 0; i < MT_COUNT(paths); i++)
        add(l, paths[i], false);
    for (size_t i = 0; i < MT_COUNT(variables); i++)
        add_file(l, getenv(variables[i]), false);
    add(l, "/dev/null", true);
}

/* Allows a folder of models with what its links point to. path may be NULL. */
static void add_linked(list *l, const char *path, bool write)
{
    add_folder(l, path, write);
    if (path)
        add_links(l, path, DEPTH);
}

/* Allows a model's folder, or the folders of its GGUF file and its projector. path may be NULL. */
static void add_model(list *l, const char *path)
{
    mt_gguf_place place;

    if (path && mt_gguf_locate(&place, path, NULL, NULL)) {
        add_file(l, path, false);
        add_file(l, place.model, false);
        add_file(l, place.projector[0] ? place.projector : NULL, false);
        add_folder(l, place.searched[0] ? place.searched : NULL, false);
    }
    add_linked(l, path, false);
}

static void add_models(list *l, const mt_options *opt, const mt_fleet *fleet)
{
    char hub[MT_LIMIT_PATH], home[MT_LIMIT_PATH];

    for (size_t i = 0; i < fleet->count; i++)
        add_model(l, fleet->members[i]->dir);
    for (size_t i = 0; i < opt->embedding_models.count; i++)
        add_model(l, opt->embedding_models.at[i]);
    add_model(l, opt->draft);
    add_linked(l, opt->models_dir, opt->allow_pull); /* with --allow-pull clients may delete models in it */
    if (mt_hub_cache(hub, getenv))
        add_folder(l, hub, opt->allow_pull);
    if (fleet->open && mt_store_lmstudio(home, getenv))
        add_linked(l, home, false);
    if (fleet->open && mt_store_ollama(home, getenv))
        add_linked(l, home, false);
    if (opt->allow_pull && mt_hub_home_file(home, "token", getenv))
        add_parent(l, home, false);
}

static void add_options(list *l, const mt_options *opt)
{
    const char *tmp = getenv("TMPDIR");

    add_file(l, opt->chat_template, false);
    add_file(l, opt->keys, false);
    add_file(l, opt->tls_cert, false);
    add_file(l, opt->tls_key, false);
    add_file(l, opt->cache_remote_key, false);
    for (size_t i = 0; i < opt->api_keys.count; i++)
        if (opt->api_keys.at[i][0] == '@')
            add_file(l, opt->api_keys.at[i] + 1, false);
    add_folder(l, opt->media_root, false);
    add_folder(l, opt->cache_dir, true);
    add_folder(l, opt->files_dir, true);
    add_file(l, opt->store, true);
    if (opt->host && strncmp(opt->host, "unix:", 5) == 0)
        add_file(l, opt->host + 5, true);
    if (opt->store || opt->allow_pull)
        add(l, tmp && *tmp ? tmp : "/tmp", true);
}

/* Whether a GPU may be used. Its driver opens devices, writes compiled kernels and may start a helper program, so
   nothing is confined then. */
static bool has_gpu(const mt_options *opt)
{
    static const char *const devices[] = {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvhost-ctrl", "/dev/dxg"};

    if (opt->device && (strncmp(opt->device, "cuda", 4) == 0 || strncmp(opt->device, "vulkan", 6) == 0))
        return true;
    for (size_t i = 0; i < MT_COUNT(devices); i++)
        if (access(devices[i], F_OK) == 0)
            return !opt->device || strcmp(opt->device, "cpu") != 0;
    return false;
}

void mt_lockdown(const mt_options *opt, const mt_fleet *fleet)
{
    list l = {0};

    done = 0;
    if (opt->sandbox == MT_SANDBOX_OFF)
        return;
    if (has_gpu(opt)) {
        mt_log_info("server.sandbox",
                    "files and programs are not locked, since there is a GPU, whose driver needs them; "
                    "--device cpu locks them");
        return;
    }
    l.arena = mt_arena_new(MT_LIMIT_REQUEST_MEMORY);
    add_system(&l);
    add_models(&l, opt, fleet);
    add_options(&l, opt);
    (void)mt_memory_total(); /* looked up while its files can be read */
    done = mt_confine(l.at, l.count);
    mt_log_debug("server.sandbox", "%zu paths", l.count);
    if (done != MT_CONFINED_ALL)
        mt_log_info("server.sandbox", "the system cannot lock%s%s%s", done & MT_CONFINED_FILES ? "" : " files",
                    done & MT_CONFINED_CALLS ? "" : " programs",
                    done & MT_CONFINED_CAPABILITIES ? "" : " capabilities");
    mt_free(l.at);
    mt_arena_free(l.arena);
    mt_crash_plant("server");
}
