/* Completes the line on the Tab key: commands, and the names of files after commands that need one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "cli/chat.h"

enum { PATH_BYTES = 4096, LIST_BYTES = 1 << 16 };

/* The beginning that all candidates so far have in common. */
typedef struct common {
    char text[PATH_BYTES];
    size_t count;
    mt_buf *list;
} common;

/* Adds one candidate. */
static void offer(common *c, const char *name, const char *end)
{
    char whole[PATH_BYTES];
    size_t same = 0;

    if (snprintf(whole, sizeof(whole), "%s%s", name, end) >= (int)sizeof(whole))
        return;
    if (c->count++ == 0)
        memcpy(c->text, whole, sizeof(whole));
    while (c->text[same] && c->text[same] == whole[same])
        same++;
    while (same > 0 && ((unsigned char)c->text[same] & 0xC0) == 0x80) /* do not cut a UTF-8 character */
        same--;
    c->text[same] = '\0';
    mt_buf_puts(c->list, whole);
    mt_buf_puts(c->list, "  ");
}

static void offer_commands(common *c, const char *line)
{
    for (size_t i = 0; i < mt_chat_command_count; i++)
        if (strncmp(mt_chat_commands[i].name, line, strlen(line)) == 0)
            offer(c, mt_chat_commands[i].name, *mt_chat_commands[i].operand ? " " : "");
}

/* Adds the files of the folder whose names begin with `begin`. Hidden files only where `begin` starts with a dot. */
static void offer_files(common *c, const char *folder, const char *begin)
{
    struct dirent **all = NULL;
    const int count = scandir(*folder ? folder : ".", &all, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        const char *name = all[i]->d_name;
        char path[PATH_BYTES];
        struct stat st;

        if (strncmp(name, begin, strlen(begin)) != 0 || (name[0] == '.' && begin[0] != '.') || strcmp(name, ".") == 0 ||
            strcmp(name, "..") == 0 || snprintf(path, sizeof(path), "%s%s", folder, name) >= (int)sizeof(path))
            continue;
        offer(c, name, stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? "/" : "");
    }
    for (int i = 0; i < count; i++)
        mt_free(all[i]);
    mt_free(all);
}

/* The operand of a command that takes a file name; NULL: the line is no such command. */
static const char *file_of(const char *line)
{
    for (size_t i = 0; i < mt_chat_command_count; i++) {
        const size_t len = strlen(mt_chat_commands[i].name);

        if (mt_chat_commands[i].file && strncmp(line, mt_chat_commands[i].name, len) == 0 && line[len] == ' ')
            return line + len + strspn(line + len, " ");
    }
    return NULL;
}

/* Appends text to a path. Unless the path is in quotes, puts backslashes before spaces and other special characters. */
static void add_more(mt_buf *more, const char *text, bool quoted)
{
    for (; *text; text++) {
        if (!quoted && strchr(" \\'\"", *text))
            mt_buf_puts(more, "\\");
        mt_buf_add(more, text, 1);
    }
}

void mt_chat_complete(const char *line, mt_buf *more, mt_buf *list)
{
    common c = {.list = list};
    const char *operand = file_of(line), *begin = line;
    char path[PATH_BYTES], folder[PATH_BYTES] = "";
    bool quoted = false;

    if (operand) {
        const char *slash;

        if (!*operand || !mt_chat_path(operand, path, sizeof(path), NULL))
            path[0] = '\0';
        quoted = *operand == '"' || *operand == '\'';
        slash = strrchr(path, '/');
        snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 0, path);
        begin = slash ? slash + 1 : path;
        offer_files(&c, folder, begin);
    } else if (*line == '/' && !strchr(line, ' '))
        offer_commands(&c, line);
    if (c.count > 0)
        add_more(more, c.text + strlen(begin), quoted || !operand);
    if (more->len > 0 || c.count < 2)
        list->len = 0;
}
