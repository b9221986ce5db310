/* A line from the person at the terminal, by libedit; or from a pipe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <histedit.h>

#include "base/alloc.h"
#include "cli/chat.h"

#define HISTORY_LINES 1000

struct mt_chat_line {
    EditLine *edit; /* NULL: plain lines */
    History *history;
    char file[4096]; /* of the history; empty: it is not kept */
    mt_buf line;
    bool cancelled;
};

static char *prompt(EditLine *edit)
{
    static char text[] = "> ";

    (void)edit;
    return text;
}

/* Ctrl-C: what was typed goes away, the program stays. */
static unsigned char cancel(EditLine *edit, int key)
{
    mt_chat_line *line;

    (void)key;
    el_get(edit, EL_CLIENTDATA, &line);
    line->cancelled = true;
    fputs("^C\n", stdout);
    return CC_NEWLINE;
}

static void open_history(mt_chat_line *line)
{
    const char *home = getenv("HOME");
    HistEvent event;

    line->history = history_init();
    history(line->history, &event, H_SETSIZE, HISTORY_LINES);
    history(line->history, &event, H_SETUNIQUE, 1);
    if (!home || snprintf(line->file, sizeof(line->file), "%s/.motet_history", home) >= (int)sizeof(line->file)) {
        line->file[0] = '\0';
        return;
    }
    history(line->history, &event, H_LOAD, line->file);
}

mt_chat_line *mt_chat_line_open(void)
{
    mt_chat_line *line = mt_alloc(sizeof(*line));

    mt_buf_init(&line->line, 1 << 20);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return line;
    line->edit = el_init("motet", stdin, stdout, stderr);
    if (!line->edit)
        return line;
    open_history(line);
    el_set(line->edit, EL_CLIENTDATA, line);
    el_set(line->edit, EL_PROMPT, prompt);
    el_set(line->edit, EL_EDITOR, "emacs");
    el_set(line->edit, EL_HIST, history, line->history);
    el_set(line->edit, EL_ADDFN, "motet-cancel", "give this line up", cancel);
    el_set(line->edit, EL_SETTY, "-d", "-isig", NULL); /* Ctrl-C is a key while a line is typed */
    el_set(line->edit, EL_BIND, "^C", "motet-cancel", NULL);
    el_set(line->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    return line;
}

void mt_chat_line_close(mt_chat_line *line)
{
    HistEvent event;

    if (!line)
        return;
    if (line->edit) {
        if (line->file[0])
            history(line->history, &event, H_SAVE, line->file);
        history_end(line->history);
        el_end(line->edit);
    }
    mt_buf_free(&line->line);
    mt_free(line);
}

static const char *read_plain(mt_chat_line *line)
{
    int c;

    line->line.len = 0;
    while ((c = getchar()) != EOF && c != '\n') {
        const char byte = (char)c;

        if (byte != '\r')
            mt_buf_add(&line->line, &byte, 1);
    }
    if (c == EOF && line->line.len == 0)
        return NULL;
    return line->line.len ? line->line.data : "";
}

const char *mt_chat_line_read(mt_chat_line *line)
{
    const char *text;
    HistEvent event;
    int len;

    if (!line->edit)
        return read_plain(line);
    line->cancelled = false;
    text = el_gets(line->edit, &len);
    if (!text || len <= 0)
        return NULL;
    line->line.len = 0;
    if (!line->cancelled)
        mt_buf_add(&line->line, text, strcspn(text, "\r\n"));
    if (line->line.len)
        history(line->history, &event, H_ENTER, line->line.data);
    return line->line.len ? line->line.data : "";
}
