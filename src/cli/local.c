/* The commands motet list and motet rm: the models that are on this machine. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cli/cli.h"
#include "hub/known.h"
#include "hub/limits.h"
#include "hub/local.h"
#include "hub/remove.h"

enum { COLUMNS = 5, ABILITIES = 64 };

/* One row of the table, as text. */
typedef struct row {
    char text[COLUMNS][MT_LIMIT_HUB_NAME * 2];
} row;

static int fail(const mt_error *err)
{
    fflush(stdout);
    fprintf(stderr, "motet: %s\n", err->text);
    return EXIT_FAILURE;
}

static void fill(row *r, const mt_local_model *m)
{
    char size[MT_UNITS_TEXT], can[ABILITIES];
    const time_t modified = (time_t)m->modified;
    struct tm tm;
    const char *values[COLUMNS] = {m->name, mt_bytes_text(m->bytes, size), *m->family ? m->family : "-",
                                   !m->whole     ? "incomplete"
                                   : m->can == 0 ? "not known here"
                                                 : mt_local_abilities(m->can, can)};

    for (size_t c = 0; c + 1 < COLUMNS; c++)
        snprintf(r->text[c], sizeof(r->text[c]), "%.500s", values[c]);
    localtime_r(&modified, &tm);
    strftime(r->text[COLUMNS - 1], sizeof(r->text[0]), "%Y-%m-%d %H:%M", &tm);
}

/* Prints the table. Every column is as wide as its widest entry but the last, the folder, which is not padded. */
static void print_table(const mt_local *list)
{
    static const row heads = {{"NAME", "SIZE", "FAMILY", "CAN", "MODIFIED"}};
    int width[COLUMNS] = {0};
    row r = heads;

    for (size_t i = 0; i <= list->count; i++) {
        for (size_t c = 0; c < COLUMNS; c++)
            width[c] = (int)strlen(r.text[c]) > width[c] ? (int)strlen(r.text[c]) : width[c];
        if (i < list->count)
            fill(&r, &list->at[i]);
    }
    r = heads;
    for (size_t i = 0; i <= list->count; i++) {
        for (size_t c = 0; c < COLUMNS; c++)
            printf("%-*s  ", width[c], r.text[c]);
        printf("%s\n", i ? list->at[i - 1].place : "WHERE");
        if (i < list->count)
            fill(&r, &list->at[i]);
    }
}

/* Sets a string member, with bytes that are no UTF-8 replaced: paths and configs may have any bytes. */
static void set_text(json_t *root, const char *key, const char *text)
{
    json_t *value = json_string(text);

    json_object_set_new(root, key, value ? value : json_string("?"));
}

static json_t *describe(const mt_local_model *m)
{
    static const char *const words[] = {"text", "vision", "embeddings", "scores", "labels"};
    json_t *can = json_array();

    for (size_t i = 0; i < MT_COUNT(words); i++)
        if (m->can >> i & 1)
            json_array_append_new(can, json_string(words[i]));
    json_t *root = json_object();
    set_text(root, "name", m->name);
    json_object_set_new(root, "bytes", json_integer((json_int_t)m->bytes));
    set_text(root, "family", m->family);
    json_object_set_new(root, "can", can);
    json_object_set_new(root, "modified", json_integer((json_int_t)m->modified));
    set_text(root, "place", m->place);
    set_text(root, "folder", m->folder);
    set_text(root, "revision", m->revision);
    json_object_set_new(root, "whole", json_boolean(m->whole));
    set_text(root, "problem", m->problem);
    return root;
}

static void print_json(const mt_local *list)
{
    json_t *models = json_array(), *root = json_object();

    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(models, describe(&list->at[i]));
    json_object_set_new(root, "models", models);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

/* Prints the short names of popular models. */
static int print_known(bool json)
{
    json_t *known = json_array(), *root = json_object();

    for (size_t i = 0; !json && i < mt_hub_short_count; i++)
        printf("%-22s %s\n", mt_hub_shorts[i].name, mt_hub_shorts[i].repository);
    for (size_t i = 0; json && i < mt_hub_short_count; i++)
        json_array_append_new(
            known, json_pack("{s:s,s:s}", "name", mt_hub_shorts[i].name, "repository", mt_hub_shorts[i].repository));
    json_object_set_new(root, "known", known);
    if (json)
        json_dumpf(root, stdout, JSON_INDENT(2));
    fputs(json ? "\n" : "", stdout);
    json_decref(root);
    return EXIT_SUCCESS;
}

int mt_cmd_list(const mt_options *opt)
{
    mt_error err = {0};
    mt_local list;

    if (opt->known)
        return print_known(opt->json);
    const bool ok = mt_local_list(&list, opt->models_dir, getenv, &err);

    if (ok && opt->json)
        print_json(&list);
    else if (ok && list.count)
        print_table(&list);
    else if (ok)
        fprintf(stderr, "motet: there are no models here yet: get one with motet pull OWNER/NAME, or a short name "
                        "of motet list --known\n");
    mt_local_free(&list);
    return ok ? EXIT_SUCCESS : fail(&err);
}

/* Bytes of a model on disk; of all its revisions where the name has none. */
static uint64_t count_bytes(const mt_options *opt, const char *name)
{
    const size_t len = strlen(name);
    uint64_t bytes = 0;
    mt_local list;

    if (mt_local_list(&list, opt->models_dir, getenv, NULL))
        for (size_t i = 0; i < list.count; i++)
            if (strncmp(list.at[i].name, name, len) == 0 && strchr("@", list.at[i].name[len]))
                bytes += list.at[i].bytes;
    mt_local_free(&list);
    return bytes;
}

/* Asks the user whether to remove the model. */
static bool ask(const mt_options *opt, const char *name)
{
    char answer[16] = "", size[MT_UNITS_TEXT];
    const uint64_t bytes = count_bytes(opt, name);

    printf("remove \"%s\"%s%s? [y/N] ", name, bytes ? ", " : "", bytes ? mt_bytes_text(bytes, size) : "");
    fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

int mt_cmd_rm(const mt_options *opt)
{
    char size[MT_UNITS_TEXT];
    const char *name = opt->dir;
    mt_hub_name found;
    mt_error err = {0};
    uint64_t freed;

    if (!mt_local_removable(name, opt->models_dir, getenv, &found, &err))
        return fail(&err);
    if (found.owned && !strchr(name, '/')) /* it was a short name */
        name = found.id;
    if (!opt->yes && !ask(opt, name)) {
        printf("\"%s\" stays\n", name);
        return EXIT_FAILURE;
    }
    if (!mt_local_remove(name, opt->models_dir, getenv, &freed, &err))
        return fail(&err);
    printf("removed \"%s\": %s\n", name, mt_bytes_text(freed, size));
    return EXIT_SUCCESS;
}
