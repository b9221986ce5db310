/* See created.h. The text of each model is kept rather than its JSON, since trees of jansson's are not shared between
   threads here: a request parses its own. */
#include "server/fleet/created.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/chat_body.h"
#include "api/ollama.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/json_tree.h"
#include "base/limits.h"
#include "base/log.h"
#include "hub/limits.h"
#include "hub/names.h"
#include "server/fleet/fleet.h"
#include "server/limits.h"

#define FOLDER "motet-created" /* within the hub's cache, whose other entries have other names */
#define SUFFIX ".json"

struct mt_created_entry {
    char *name, *from;
    char *text; /* the JSON */
    size_t len;
};

static void free_entry(mt_created_entry *e)
{
    mt_free(e->name);
    mt_free(e->from);
    mt_free(e->text);
}

/* The path of a model's file, whose name is the model's in hexadecimal digits: any byte of it is safe there. */
static bool path_of(const mt_created *all, const char *name, const char *suffix, char out[MT_LIMIT_PATH])
{
    char file[2 * MT_LIMIT_CREATED_NAME + 16], hex[2 * MT_LIMIT_CREATED_NAME + 1];

    mt_hex_text((const uint8_t *)name, strlen(name), hex);
    snprintf(file, sizeof(file), "%s%s", hex, suffix);
    return mt_hub_join(out, all->folder, file);
}

bool mt_created_name_ok(const char *name)
{
    const size_t len = strlen(name);

    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && (i == 0 || i + 1 == len || !strchr("._-:/", name[i])))
            return false;
    return len > 0 && len <= MT_LIMIT_CREATED_NAME && !strstr(name, "..") && !strstr(name, "//");
}

/* Where the model of that name is, or would be. */
static size_t place_of(const mt_created *all, const char *name, bool *found)
{
    size_t at = 0;

    while (at < all->count && strcmp(all->at[at].name, name) < 0)
        at++;
    *found = at < all->count && strcmp(all->at[at].name, name) == 0;
    return at;
}

/* Makes an entry of a model's JSON; false: it is none. */
static bool make_entry(mt_created_entry *e, const json_t *model)
{
    const char *name = mt_json_word(json_object_get(model, "name")),
               *from = mt_json_word(json_object_get(model, "from"));
    mt_buf text = {.limit = MT_LIMIT_CREATED_BYTES};
    const bool ok = name && from && mt_created_name_ok(name) && strlen(from) < MT_LIMIT_HUB_NAME &&
                    mt_json_tree_write(&text, model) && !text.full;

    if (ok)
        *e = (mt_created_entry){
            .name = mt_strdup(name), .from = mt_strdup(from), .text = mt_strdup(text.data), .len = text.len};
    mt_buf_free(&text);
    return ok;
}

/* Adds an entry, which it owns, in place of an earlier one of the name. False: there are as many as may be. */
static bool insert(mt_created *all, mt_created_entry *e)
{
    bool found;
    const size_t at = place_of(all, e->name, &found);

    if (found)
        free_entry(&all->at[at]);
    else if (all->count >= MT_LIMIT_CREATED)
        return false;
    else {
        all->at = mt_grow(all->at, &all->cap, all->count + 1, sizeof(*all->at));
        memmove(all->at + at + 1, all->at + at, (all->count - at) * sizeof(*all->at));
        all->count++;
    }
    all->at[at] = *e;
    return true;
}

/* Reads one file of the folder; what cannot be read stays there, with a line in the log. */
static void read_file(mt_created *all, const char *file)
{
    mt_buf text = {.limit = MT_LIMIT_CREATED_BYTES};
    char path[MT_LIMIT_PATH];
    mt_created_entry e;
    mt_error err = {0};
    json_t *model = NULL;

    if (mt_hub_join(path, all->folder, file) && mt_file_read(&text, path, &err))
        model = mt_json_tree_try(text.data ? text.data : "", text.len);
    if (!model || !make_entry(&e, model))
        mt_log_warn("model.created", "\"%.100s\" cannot be read as a created model, and is left out", file);
    else if (!insert(all, &e)) {
        mt_log_warn("model.created", "there are more than %d created models: \"%s\" is left out", MT_LIMIT_CREATED,
                    e.name);
        free_entry(&e);
    }
    json_decref(model);
    mt_buf_free(&text);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

void mt_created_open(mt_created *all, const char *cache)
{
    char path[MT_LIMIT_PATH];
    DIR *dir;

    pthread_mutex_init(&all->file, NULL);
    pthread_mutex_init(&all->lock, NULL);
    if (!cache || !mt_hub_join(path, cache, FOLDER))
        return;
    all->folder = mt_strdup(path);
    dir = opendir(path);
    for (const struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
        if (ends_with(d->d_name, SUFFIX))
            read_file(all, d->d_name);
    if (dir)
        closedir(dir);
}

void mt_created_close(mt_created *all)
{
    for (size_t i = 0; i < all->count; i++)
        free_entry(&all->at[i]);
    mt_free(all->at);
    mt_free(all->folder);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->file);
    *all = (mt_created){.count = 0};
}

static mt_created_entry *find(const mt_created *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (mt_served_called(name, all->at[i].name))
            return &all->at[i];
    return NULL;
}

json_t *mt_created_get(mt_created *all, const char *name)
{
    const mt_created_entry *e;
    char *text = NULL;
    size_t len = 0;
    json_t *model;

    pthread_mutex_lock(&all->lock);
    e = name ? find(all, name) : NULL;
    if (e) {
        text = mt_strdup(e->text);
        len = e->len;
    }
    pthread_mutex_unlock(&all->lock);
    model = text ? mt_json_tree_try(text, len) : NULL;
    mt_free(text);
    return model;
}

mt_member *mt_created_unload(mt_created *all, mt_fleet *fleet, const char *name)
{
    json_t *model = mt_created_get(all, name);
    mt_member *unloaded = mt_fleet_unload(fleet, model ? mt_body_text(model, "from") : name);

    json_decref(model);
    return unloaded;
}

mt_created_name *mt_created_list(mt_created *all, size_t *count)
{
    mt_created_name *out;

    pthread_mutex_lock(&all->lock);
    out = mt_alloc_array(all->count + 1, sizeof(*out));
    for (*count = 0; *count < all->count; (*count)++) {
        snprintf(out[*count].name, sizeof(out->name), "%s", all->at[*count].name);
        snprintf(out[*count].from, sizeof(out->from), "%s", all->at[*count].from);
    }
    pthread_mutex_unlock(&all->lock);
    return out;
}

static bool write_all(int fd, const char *text, size_t len)
{
    ssize_t n = 0;

    for (size_t done = 0; done < len && n >= 0; done += n > 0 ? (size_t)n : 0)
        n = write(fd, text + done, len - done);
    return n >= 0 && fsync(fd) == 0;
}

/* The file has its name once it is whole and on the disk; until then, one that no other process uses. */
static bool write_file(const mt_created *all, const mt_created_entry *e, mt_error *err)
{
    char path[MT_LIMIT_PATH], passing[MT_LIMIT_PATH], suffix[32];
    int why;

    snprintf(suffix, sizeof(suffix), ".%ld.new", (long)getpid());
    bool ok = mt_file_make_folder(all->folder) && path_of(all, e->name, SUFFIX, path) &&
              path_of(all, e->name, suffix, passing);
    const int fd = ok ? open(passing, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;

    ok = fd >= 0 && write_all(fd, e->text, e->len);
    why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(passing, path) != 0) {
        ok = false;
        why = errno;
    }
    if (!ok && fd >= 0)
        unlink(passing);
    return ok || mt_fail(err, MT_E_IO, "the model cannot be written: %s", strerror(why));
}

/* Whether there is room for a model of that name. With `file` held, so that no other is added meanwhile. */
static bool has_room(mt_created *all, const char *name, mt_error *err)
{
    bool found, full;

    if (!all->folder)
        return mt_fail(err, MT_E_UNSUPPORTED, "there is no folder for created models: set HF_HUB_CACHE or HOME");
    pthread_mutex_lock(&all->lock);
    place_of(all, name, &found);
    full = !found && all->count >= MT_LIMIT_CREATED;
    pthread_mutex_unlock(&all->lock);
    return !full || mt_fail(err, MT_E_TOO_LARGE, "there are %d created models already: delete one", MT_LIMIT_CREATED);
}

bool mt_created_put(mt_created *all, const json_t *model, mt_error *err)
{
    mt_created_entry e;
    bool ok;

    if (!make_entry(&e, model))
        return mt_fail(err, MT_E_TOO_LARGE, "the model has more than %d bytes: make its messages shorter",
                       MT_LIMIT_CREATED_BYTES);
    pthread_mutex_lock(&all->file);
    ok = has_room(all, e.name, err) && write_file(all, &e, err);
    if (ok) {
        pthread_mutex_lock(&all->lock);
        ok = insert(all, &e);
        pthread_mutex_unlock(&all->lock);
    }
    pthread_mutex_unlock(&all->file);
    if (!ok)
        free_entry(&e);
    return ok;
}

/* Takes an entry out of the list. *path: of its file. False: there is none of that name. */
static bool take_out(mt_created *all, const char *name, char path[MT_LIMIT_PATH])
{
    mt_created_entry *e;
    bool ok;

    pthread_mutex_lock(&all->lock);
    e = find(all, name);
    ok = e && path_of(all, e->name, SUFFIX, path);
    if (ok) {
        free_entry(e);
        memmove(e, e + 1, (size_t)(all->at + all->count - (e + 1)) * sizeof(*e));
        all->count--;
    }
    pthread_mutex_unlock(&all->lock);
    return ok;
}

bool mt_created_remove(mt_created *all, const char *name, mt_error *err)
{
    char path[MT_LIMIT_PATH];
    bool ok;

    *err = (mt_error){.code = MT_OK};
    pthread_mutex_lock(&all->file);
    ok = take_out(all, name, path);
    if (ok && unlink(path) != 0 && errno != ENOENT)
        ok = mt_fail(err, MT_E_IO, "the model's file cannot be deleted, and it comes back with the next start: %s",
                     strerror(errno));
    pthread_mutex_unlock(&all->file);
    return ok;
}

bool mt_created_settings(const json_t *model, mt_ask *ask, mt_failure *why)
{
    const json_t *parameters = mt_body_get(model, "parameters");

    return !parameters || mt_ollama_parameters(ask, parameters, why);
}

static bool add_messages(const json_t *model, mt_chat *chat, mt_failure *why)
{
    const json_t *messages = mt_body_get(model, "messages");
    mt_chat_message message;
    mt_error err = {0};

    if (messages && !json_is_array(messages))
        return mt_failure_type(why, "messages", messages, "a list of messages");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        if (!mt_chat_read_message(chat, json_array_get(messages, i), NULL, &message, &err))
            return mt_failure_from(why, &err, "messages");
        mt_chat_put(chat, &message);
    }
    return true;
}

/* The template goes where one of the client's would be. */
static void set_template(const json_t *model, mt_ask *ask)
{
    json_t *template = json_object_get(model, "template");
    json_t *body;

    if (json_string_length(template) == 0 || mt_body_get(ask->body, "chat_template"))
        return;
    body = json_copy((json_t *)(uintptr_t)ask->body); /* not const for jansson; nothing is changed */
    json_object_set(body, "chat_template", template);
    ask->body = mt_ask_own(ask, body);
}

bool mt_created_chat(const json_t *model, mt_ask *ask, mt_failure *why)
{
    const mt_chat old = ask->chat;
    const json_t *system = mt_body_get(model, "system");
    const bool own = old.count > 0 && old.messages[0].role == MT_CHAT_SYSTEM;
    mt_chat_message first = {.role = MT_CHAT_SYSTEM};
    mt_error err = {0};

    set_template(model, ask);
    if (ask->before_count > 0) /* an earlier conversation has begun with them */
        return true;
    ask->chat.messages = NULL;
    ask->chat.count = 0;
    if (own)
        mt_chat_put(&ask->chat, &old.messages[0]);
    else if (json_string_length(system)) {
        mt_chat_add_text(&ask->chat, &first, mt_chat_text_of(system));
        mt_chat_put(&ask->chat, &first);
    }
    if (!add_messages(model, &ask->chat, why))
        return false;
    for (size_t i = own; i < old.count; i++)
        mt_chat_put(&ask->chat, &old.messages[i]);
    if (ask->chat.count == 0) /* none was asked yet */
        return !ask->chat.starved || mt_failure_memory(why, ask->chat.field);
    return mt_chat_end(&ask->chat, &err) || mt_failure_from(why, &err, ask->chat.field);
}
