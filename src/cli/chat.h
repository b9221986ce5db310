/* The parts of motet chat, of motet run with a message, and of all other commands that send HTTP requests: input from
   the terminal, the server, requests, the conversation. */
#ifndef MT_CLI_CHAT_H
#define MT_CLI_CHAT_H

#include <curl/curl.h>
#include <jansson.h>

#include "base/buf.h"
#include "cli/chat_events.h"
#include "options/options.h"

/* ---- input ---- */

/* Reads lines from standard input: with editing and a history where that is a terminal, as plain lines otherwise. */
typedef struct mt_chat_line mt_chat_line;

/* Called on the Tab key with the line so far. Appends to `more` the text that can follow in every case; where there is
   none and there are several possibilities, appends those to `list`. */
typedef void mt_chat_complete_fn(const char *line, mt_buf *more, mt_buf *list);
mt_chat_complete_fn mt_chat_complete;

/* `complete` is called on the Tab key. Free with mt_chat_line_close, which restores the state of the terminal and saves
   the history. */
mt_chat_line *mt_chat_line_open(mt_chat_complete_fn *complete);
void mt_chat_line_close(mt_chat_line *line); /* NULL is fine */

/* The next line without its newline, valid until the next call. NULL: the input ended, or Ctrl-C was pressed twice in a
   row. Ctrl-C once gives an empty line. */
const char *mt_chat_line_read(mt_chat_line *line, const char *prompt);

/* The file name that a user has typed: removes quotes and backslashes as a shell does, replaces ~ by the home folder.
   False: the name is longer than `size`. */
bool mt_chat_path(const char *text, char *out, size_t size, mt_error *err) MT_NODISCARD;

/* ---- the server ---- */

#define MT_CHAT_USUAL_URL "http://127.0.0.1:8000"

/* A server that answers chat requests: one that runs elsewhere, or one that this process has started. */
typedef struct mt_chat_server {
    char url[512];    /* without a slash at the end */
    char socket[128]; /* path of a Unix socket to connect to; empty: connect to the host of the URL */
    char model[256];  /* the name to ask for */
    const char *key;  /* the API key; NULL: none; borrowed */
    json_t *settings; /* the members that every request has besides its messages; owned */
    int pid;          /* of the server process that we started; 0: we started none */
} mt_chat_server;

/* Connects to the server whose URL the options have, or starts a server process for the model that they name and waits
   until it is ready, with messages on standard error. Where the options have neither: the server at MT_CHAT_USUAL_URL,
   or else a server for the model in the folder models/box. False: *err says why. End with mt_chat_server_close in
   either case. */
bool mt_chat_server_open(mt_chat_server *server, const mt_options *opt, mt_error *err) MT_NODISCARD;
void mt_chat_server_close(mt_chat_server *server); /* frees, and ends the process that was started */

/* Connects to the server at a URL. False: no server answers there. */
bool mt_chat_server_reach(mt_chat_server *server, const char *url, mt_error *err) MT_NODISCARD;

/* ---- asking ---- */

/* Sends the messages and waits for the whole answer; calls answer->piece for each piece of text that comes. False: the
   request failed. True with answer->interrupted: the user pressed Ctrl-C. */
bool mt_chat_ask(const mt_chat_server *server, const json_t *messages, mt_chat_answer *answer,
                 mt_error *err) MT_NODISCARD;

/* The same as a libcurl handle, for callers that run many requests at once. Borrows all arguments until
   mt_chat_call_end, which gets the result of the transfer and frees the call. */
typedef struct mt_chat_call mt_chat_call;
mt_chat_call *mt_chat_call_new(const mt_chat_server *server, const json_t *messages, mt_chat_answer *answer,
                               mt_error *err) MT_NODISCARD;
CURL *mt_chat_call_handle(mt_chat_call *call);
bool mt_chat_call_end(mt_chat_call *call, CURLcode code, mt_error *err) MT_NODISCARD;

/* Appends a picture, video or document to the parts of a message. `what` is the name of a file, "-" for standard input,
   or a URL; `kind` is "image", "video" or "file". False: it cannot be read. */
bool mt_chat_add_media(json_t *parts, const char *kind, const char *what, mt_error *err) MT_NODISCARD;

/* The members that the options give to every request (model parameters such as temperature). Free with json_decref. */
json_t *mt_chat_settings(const mt_options *opt);

/* Makes a message of the user from media parts and text. NULL: the text is not UTF-8. Free with json_decref. */
json_t *mt_chat_message(const json_t *media, const char *text, mt_error *err) MT_NODISCARD;

/* Prints a piece of an answer on standard output; reasoning is set apart from the answer. An mt_chat_answer.piece. */
void mt_chat_show(mt_chat_answer *answer, bool reasoning, const char *text);
/* Ends the output of mt_chat_show. */
void mt_chat_show_end(const mt_chat_answer *answer);

/* ---- the conversation ---- */

/* A conversation in the terminal. */
typedef struct mt_chat_talk {
    mt_chat_server server;
    mt_chat_line *input;
    json_t *messages; /* all messages so far, the system message first if there is one; owned */
    json_t *pictures; /* media parts of the next message, documents too; owned */
    char file[4096];  /* the file that the conversation was saved to or loaded from; empty: none */
    bool terminal;    /* standard output is a terminal */
} mt_chat_talk;

/* A command of the user, such as "/save FILE". */
typedef struct mt_chat_command {
    const char *name, *operand, *help;
    bool file; /* the operand is the name of a file */
    void (*run)(mt_chat_talk *talk, const char *operand);
} mt_chat_command;

extern const mt_chat_command mt_chat_commands[];
extern const size_t mt_chat_command_count;

/* Runs the command in a line that begins with a slash. False: the user wants to leave. */
bool mt_chat_obey(mt_chat_talk *talk, const char *line);

/* Sets the system message; "" removes it. */
void mt_chat_set_system(mt_chat_talk *talk, const char *text);

/* Requests an answer to the messages and appends it. Where it calls tools, asks the user for their results and requests
   a further answer. On failure, cuts the messages to the first `before`. */
bool mt_chat_answer_to(mt_chat_talk *talk, size_t before, mt_error *err) MT_NODISCARD;

/* Sends GET url/path. Returns the HTTP status; 0: no server answers. */
long mt_chat_get(const mt_chat_server *server, const char *path, mt_buf *body);

/* Sends POST url/path with the body `sent`. Returns the HTTP status; 0: no server answers. mt_chat_post waits for an
   answer as long as it takes, mt_chat_send some seconds. */
long mt_chat_send(const mt_chat_server *server, const char *path, const char *sent, mt_buf *body);
long mt_chat_post(const mt_chat_server *server, const char *path, const char *sent, mt_buf *body);

/* Uploads a file with a purpose; and writes the answer to a GET. Return the HTTP status; 0: no server answers. */
long mt_chat_upload(const mt_chat_server *server, const char *path, const char *purpose, const char *file,
                    mt_buf *body);
long mt_chat_fetch(const mt_chat_server *server, const char *path, FILE *to);

/* From mt_chat_interruptible(true) to mt_chat_interruptible(false), Ctrl-C does not end the program: it makes
   mt_chat_interrupted true and ends the request under way. */
void mt_chat_interruptible(bool on);
bool mt_chat_interrupted(void);

#endif
