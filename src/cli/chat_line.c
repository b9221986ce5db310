/* Reads lines from the terminal with libedit, or from a pipe: see chat.h. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <histedit.h>

#include "base/alloc.h"
#include "cli/chat.h"

#define HISTORY_LINES 1000
#define LINE_BYTES (1u << 20)

struct mt_chat_line {
    EditLine *edit; /* NULL: standard input is not a terminal */
    History *history;
    char file[4096]; /* the file of the history; empty: the history is not saved */
    mt_buf line;
    char prompt[64];
    mt_chat_complete_fn *complete;
    bool cancelled; /* Ctrl-C ended the current line */
    bool asked;     /* Ctrl-C was pressed on an empty line: the next one leaves */
};

static char *prompt(EditLine *edit)
{
    mt_chat_line *line;

    el_get(edit, EL_CLIENTDATA, &line);
    return line->prompt;
}

/* The key Ctrl-C: discards the line. On an empty line, the second time ends the input. */
static unsigned char cancel(EditLine *edit, int key)
{
    const LineInfo *typed = el_line(edit);
    const bool empty = typed->lastchar == typed->buffer;
    mt_chat_line *line;

    (void)key;
    el_get(edit, EL_CLIENTDATA, &line);
    if (empty && line->asked)
        return CC_EOF;
    line->asked = empty;
    line->cancelled = true;
    fputs(empty ? "^C\n(Ctrl-C again leaves)\n" : "^C\n", stdout);
    return CC_NEWLINE;
}

static unsigned char on_tab(EditLine *edit, int key)
{
    const LineInfo *typed = el_line(edit);
    mt_buf line, more, list;
    unsigned char what = CC_REFRESH_BEEP;
    mt_chat_line *own;

    (void)key;
    el_get(edit, EL_CLIENTDATA, &own);
    mt_buf_init(&line, LINE_BYTES);
    mt_buf_init(&more, LINE_BYTES);
    mt_buf_init(&list, LINE_BYTES);
    mt_buf_add(&line, typed->buffer, (size_t)(typed->cursor - typed->buffer));
    own->complete(line.data, &more, &list);
    if (more.len && el_insertstr(edit, more.data) == 0)
        what = CC_REFRESH;
    else if (list.len) {
        printf("\n%s\n", list.data);
        what = CC_REDISPLAY;
    }
    mt_buf_free(&line);
    mt_buf_free(&more);
    mt_buf_free(&list);
    return what;
}

/* libedit treats characters as bytes unless the locale is UTF-8. Many containers set no locale: choose one with
   UTF-8. */
static void choose_locale(void)
{
    if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
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

mt_chat_line *mt_chat_line_open(mt_chat_complete_fn *complete)
{
    mt_chat_line *line = mt_alloc(sizeof(*line));

    line->complete = complete;
    mt_buf_init(&line->line, LINE_BYTES);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return line;
    choose_locale();
    line->edit = el_init("motet", stdin, stdout, stderr);
    if (!line->edit)
        return line;
    open_history(line);
    el_set(line->edit, EL_CLIENTDATA, line);
    el_set(line->edit, EL_PROMPT, prompt);
    el_set(line->edit, EL_EDITOR, "emacs");
    el_set(line->edit, EL_HIST, history, line->history);
    el_set(line->edit, EL_ADDFN, "motet-cancel", "give this line up", cancel);
    el_set(line->edit, EL_SETTY, "-d", "-isig", NULL); /* Ctrl-C is a key while a line is typed, not a signal */
    el_set(line->edit, EL_BIND, "^C", "motet-cancel", NULL);
    el_set(line->edit, EL_ADDFN, "motet-complete", "what can follow", on_tab);
    el_set(line->edit, EL_BIND, "^I", "motet-complete", NULL);
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

const char *mt_chat_line_read(mt_chat_line *line, const char *question)
{
    const char *text;
    HistEvent event;
    int len;

    if (!line->edit)
        return read_plain(line);
    snprintf(line->prompt, sizeof(line->prompt), "%s", question);
    line->cancelled = false;
    text = el_gets(line->edit, &len);
    if (!line->cancelled && (!text || len <= 0))
        return NULL;
    line->line.len = 0;
    line->asked = line->asked && line->cancelled;
    if (!line->cancelled)
        mt_buf_add(&line->line, text, strcspn(text, "\r\n"));
    if (line->line.len)
        history(line->history, &event, H_ENTER, line->line.data);
    return line->line.len ? line->line.data : "";
}

bool mt_chat_path(const char *text, char *out, size_t size, mt_error *err)
{
    const char *home = getenv("HOME"), quote = *text == '"' || *text == '\'' ? *text : '\0';
    size_t len = strlen(text), at = 0;

    while (len > 0 && text[len - 1] == ' ' && !(len > 1 && text[len - 2] == '\\'))
        len--;
    if (!quote && home && text[0] == '~' && (len == 1 || text[1] == '/')) {
        at = strlen(home);
        if (at >= size)
            return mt_fail(err, MT_E_INVALID, "the path is too long");
        memcpy(out, home, at);
        text++;
        len--;
    }
    for (size_t i = quote ? 1 : 0; i < len && text[i] != (quote ? quote : '\n'); i++) {
        if (text[i] == '\\' && !quote && i + 1 < len) /* terminals write the name of a dropped file with backslashes */
            i++;
        if (at + 1 >= size)
            return mt_fail(err, MT_E_INVALID, "the path is too long");
        out[at++] = text[i];
    }
    out[at] = '\0';
    return at > 0 || mt_fail(err, MT_E_INVALID, "there is no path; name a file");
}
