/* The parts of motet chat and of motet run with a message: a line of input, a server to talk to, the talk itself. */
#ifndef MT_CLI_CHAT_H
#define MT_CLI_CHAT_H

#include <curl/curl.h>
#include <jansson.h>

#include "base/buf.h"
#include "cli/chat_events.h"
#include "server/options.h"

/* ---- input ---- */

typedef struct mt_chat_line mt_chat_line;

/* For the Tab key, what can follow the line so far: appended to `more`, and where there are several ways to go on and
   nothing to append, these to `list`. */
typedef void mt_chat_complete_fn(const char *line, mt_buf *more, mt_buf *list);
mt_chat_complete_fn mt_chat_complete;

/* With editing and history where standard input is a terminal, as plain lines otherwise. Free with mt_chat_line_close,
   which leaves the terminal as it was and keeps the history for the next time. */
mt_chat_line *mt_chat_line_open(mt_chat_complete_fn *complete);
void mt_chat_line_close(mt_chat_line *line); /* NULL is fine */

/* The next line without its end, valid until the next call; NULL at the end of the input, which Ctrl-C is the second
   time in a row. A line that Ctrl-C has ended is empty. */
const char *mt_chat_line_read(mt_chat_line *line, const char *prompt);

/* The path that people mean: without the quotes or backslashes of a shell, with ~ as their folder. */
bool mt_chat_path(const char *text, char *out, size_t size, mt_error *err) MT_NODISCARD;

/* ---- the server ---- */

#define MT_CHAT_USUAL_URL "http://127.0.0.1:8000"

typedef struct mt_chat_server {
    char url[512];    /* without a slash at the end */
    char socket[128]; /* a path; empty where the url says it all */
    char model[256];  /* what the server calls it */
    const char *key;  /* NULL: none */
    json_t *settings; /* what every request has besides its messages; free with json_decref */
    int pid;          /* of a server of our own; 0: it is another's */
} mt_chat_server;

/* Reaches the server at a URL, or starts one for a folder and waits until it is ready, saying so on standard error.
   Without either: the server on this machine, or the model in the box. False with a sentence. */
bool mt_chat_server_open(mt_chat_server *server, const mt_options *opt, mt_error *err) MT_NODISCARD;
void mt_chat_server_close(mt_chat_server *server); /* ends one of our own */

/* Only the first: somebody's server, which must answer. */
bool mt_chat_server_reach(mt_chat_server *server, const char *url, mt_error *err) MT_NODISCARD;

/* ---- asking ---- */

/* Sends the messages and calls piece with what comes. False with a sentence; an interrupted answer is none. */
bool mt_chat_ask(const mt_chat_server *server, const json_t *messages, mt_chat_answer *answer,
                 mt_error *err) MT_NODISCARD;

/* The same for those who have many requests under way at once, whose handles they put together. Borrows both until
   mt_chat_call_end, which is told how the transfer ended and frees the call. */
typedef struct mt_chat_call mt_chat_call;
mt_chat_call *mt_chat_call_new(const mt_chat_server *server, const json_t *messages, mt_chat_answer *answer,
                               mt_error *err) MT_NODISCARD;
CURL *mt_chat_call_handle(mt_chat_call *call);
bool mt_chat_call_end(mt_chat_call *call, CURLcode code, mt_error *err) MT_NODISCARD;

/* Adds a picture or a video to the parts of a message: a file's contents, what comes on standard input ("-"), or a URL.
   kind: "image" or "video". */
bool mt_chat_add_media(json_t *parts, const char *kind, const char *what, mt_error *err) MT_NODISCARD;

/* What options say of every request. Free with json_decref. */
json_t *mt_chat_settings(const mt_options *opt);

/* A user's: pictures and videos first, then the words. NULL with a sentence when these are not UTF-8. */
json_t *mt_chat_message(const json_t *media, const char *text, mt_error *err) MT_NODISCARD;

/* Prints a piece on standard output, and what follows the last one; reasoning stands apart. */
void mt_chat_show(mt_chat_answer *answer, bool reasoning, const char *text);
void mt_chat_show_end(const mt_chat_answer *answer);

/* ---- the conversation ---- */

typedef struct mt_chat_talk {
    mt_chat_server server;
    mt_chat_line *input;
    json_t *messages; /* with the system's first, where there is one */
    json_t *pictures; /* parts that go with the next message */
    char file[4096];  /* that it was saved to or loaded from; empty: none */
    bool terminal;    /* a person looks on */
} mt_chat_talk;

/* What stands after a slash. */
typedef struct mt_chat_command {
    const char *name, *operand, *help;
    bool file; /* the operand is one */
    void (*run)(mt_chat_talk *talk, const char *operand);
} mt_chat_command;

extern const mt_chat_command mt_chat_commands[];
extern const size_t mt_chat_command_count;

/* Does what a line that begins with a slash says. False to leave. */
bool mt_chat_obey(mt_chat_talk *talk, const char *line);

/* The system's text; "": none. */
void mt_chat_set_system(mt_chat_talk *talk, const char *text);

/* Asks for an answer to the messages, and for another one once the calls in it have their results. Where there is none,
   the messages are cut to `before` of them. */
bool mt_chat_answer_to(mt_chat_talk *talk, size_t before, mt_error *err) MT_NODISCARD;

/* GET url/path. The status, 0 where nobody answers. */
long mt_chat_get(const mt_chat_server *server, const char *path, mt_buf *body);

/* The same with a body that is sent. */
long mt_chat_send(const mt_chat_server *server, const char *path, const char *sent, mt_buf *body);

/* Ctrl-C ends what runs from here to there, instead of the program. */
void mt_chat_interruptible(bool on);
bool mt_chat_interrupted(void);

#endif
