/* Reads the tools of Anthropic's requests. Tools that clients run have a schema, or a type that Anthropic has defined:
   then the client sends no schema, since Anthropic's models know it. Other models do not, so it is written here. */
#include <stdio.h>
#include <string.h>

#include "api/anthropic.h"
#include "api/chat_body.h"
#include "api/fields.h"
#include "api/openai_tools.h"
#include "base/json_tree.h"

/* Parameters of such tools. kind: a JSON type, a list of so many integers, or the words it may be, with "|" between
   them. about: may be NULL. */
typedef struct parameter {
    const char *name, *kind, *about;
} parameter;

static const parameter parameters[] = {
    {"command", "string", "The command to run."},
    {"restart", "boolean", "True restarts the shell; no command is needed then."},
    {"path", "string", NULL},
    {"file_text", "string", "Of create: the content of the file."},
    {"old_str", "string", "Of str_replace: the text to replace, which must stand there once."},
    {"new_str", "string", "The new text."},
    {"insert_line", "integer", "Of insert: the number of the line to insert behind."},
    {"insert_text", "string", "Of insert: the text to insert."},
    {"view_range", "2 integers", "Of view: the first and the last line."},
    {"old_path", "string", "Of rename."},
    {"new_path", "string", "Of rename."},
    {"coordinate", "2 integers", "x and y in pixels from the upper left corner."},
    {"text", "string", "Of type: the text; of key and hold_key: the keys, as in ctrl+s."},
    {"start_coordinate", "2 integers", "Of left_click_drag: where it begins."},
    {"scroll_direction", "up|down|left|right", NULL},
    {"scroll_amount", "integer", NULL},
    {"duration", "number", "Of hold_key and wait: seconds."},
    {"region", "4 integers", "Of zoom: x and y of two corners."},
};

#define EDITS "Views, creates and edits text files."
#define OLD_EDITOR "path|file_text|old_str|new_str|insert_line|view_range" /* new_str has the text of insert, too */
#define EDITOR "path|file_text|old_str|new_str|insert_line|insert_text|view_range"
#define REMEMBERS "Reads and writes files below /memories, which outlive the conversation. View /memories first."

#define USES "Uses a screen, a mouse and a keyboard."
#define FIRST_ACTIONS                                                                                  \
    "key|type|mouse_move|left_click|left_click_drag|right_click|middle_click|double_click|screenshot|" \
    "cursor_position"
#define ACTIONS FIRST_ACTIONS "|left_mouse_down|left_mouse_up|scroll|hold_key|wait|triple_click"
#define COMPUTER "coordinate|text|start_coordinate|scroll_direction|scroll_amount|duration"

/* A row for each beginning of a type, longer ones first. A type with a newer date than these has the schema of the
   latest. */
static const struct {
    const char *type, *about;
    parameter choice;     /* what the tool is to do, which is required; name is NULL where it does one thing only */
    const char *others;   /* names of other parameters, with "|" between them */
    const char *required; /* one of these; NULL: none */
} defined[] = {
    {"bash_", "Runs commands in a shell that stays open between calls.", {NULL, NULL, NULL}, "command|restart", NULL},
    {"text_editor_20241022", EDITS, {"command", "view|create|str_replace|insert|undo_edit", NULL}, OLD_EDITOR, "path"},
    {"text_editor_20250124", EDITS, {"command", "view|create|str_replace|insert|undo_edit", NULL}, OLD_EDITOR, "path"},
    {"text_editor_20250429", EDITS, {"command", "view|create|str_replace|insert", NULL}, OLD_EDITOR, "path"},
    {"text_editor_", EDITS, {"command", "view|create|str_replace|insert", NULL}, EDITOR, "path"},
    {"memory_",
     REMEMBERS,
     {"command", "view|create|str_replace|insert|delete|rename", NULL},
     EDITOR "|old_path|new_path",
     NULL},
    {"computer_20241022", USES, {"action", FIRST_ACTIONS, NULL}, "coordinate|text", NULL},
    {"computer_20250124", USES, {"action", ACTIONS, NULL}, COMPUTER, NULL},
    {"computer_", USES, {"action", ACTIONS "|zoom", NULL}, COMPUTER "|region", NULL},
};

/* A new list of the words between "|". */
static json_t *list_words(const char *words)
{
    json_t *list = json_array();

    for (size_t len; *words; words += len + (words[len] == '|')) {
        len = strcspn(words, "|");
        json_array_append_new(list, json_stringn(words, len));
    }
    return list;
}

static void add_parameter(json_t *properties, const parameter *p)
{
    json_t *made;

    if (strchr(p->kind, '|'))
        made = json_pack("{s:s, s:o}", "type", "string", "enum", list_words(p->kind));
    else if (*p->kind == '2' || *p->kind == '4')
        made = json_pack("{s:s, s:{s:s}, s:i, s:i}", "type", "array", "items", "type", "integer", "minItems",
                         *p->kind - '0', "maxItems", *p->kind - '0');
    else
        made = json_pack("{s:s}", "type", p->kind);
    if (p->about)
        json_object_set_new(made, "description", json_string(p->about));
    json_object_set_new(properties, p->name, made);
}

/* The schema of a row; a new reference. */
static json_t *make_schema(size_t row)
{
    json_t *properties = json_object(), *required = json_array(), *names = list_words(defined[row].others);

    if (defined[row].choice.name) {
        add_parameter(properties, &defined[row].choice);
        json_array_append_new(required, json_string(defined[row].choice.name));
    }
    if (defined[row].required)
        json_array_append_new(required, json_string(defined[row].required));
    for (size_t i = 0; i < json_array_size(names); i++)
        for (size_t k = 0; k < MT_COUNT(parameters); k++)
            if (strcmp(json_string_value(json_array_get(names, i)), parameters[k].name) == 0)
                add_parameter(properties, &parameters[k]);
    json_decref(names);
    return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "required", required);
}

/* The row of a tool's type; MT_COUNT(defined): there is none. */
static size_t find_defined(const char *type)
{
    size_t i = 0;

    while (i < MT_COUNT(defined) && strncmp(type, defined[i].type, strlen(defined[i].type)) != 0)
        i++;
    return i;
}

/* What the tool does; for a computer, with the size of its screen, which the model has to know. */
static json_t *describe(const json_t *tool, const char *about)
{
    const json_t *width = json_object_get(tool, "display_width_px"),
                 *height = json_object_get(tool, "display_height_px");

    if (!json_is_integer(width) || !json_is_integer(height))
        return json_string(about);
    return json_sprintf("%s The screen has %" JSON_INTEGER_FORMAT " by %" JSON_INTEGER_FORMAT " pixels.", about,
                        json_integer_value(width), json_integer_value(height));
}

static void add_defined(json_t *list, const json_t *tool, size_t row)
{
    json_t *schema = make_schema(row), *made = mt_body_tool(tool, schema);

    json_object_set_new(json_object_get(made, "function"), "description", describe(tool, defined[row].about));
    json_array_append_new(list, made);
    json_decref(schema);
}

/* Notes members of tools that nothing reads. */
static void note(mt_ask *ask, const json_t *tools)
{
    static const char *const known[] = {"allowed_callers", /* of tools that are called by code as well */
                                        "cache_control",
                                        "description",
                                        "display_height_px",
                                        "display_number",
                                        "display_width_px",
                                        "eager_input_streaming",
                                        "enable_zoom", /* as the type says */
                                        "input_schema",
                                        "max_characters", /* which the client's editor keeps to */
                                        "name",
                                        "strict",
                                        "type",
                                        NULL};

    for (size_t i = 0; i < json_array_size(tools); i++)
        if (mt_body_get(json_array_get(tools, i), "input_schema") ||
            find_defined(mt_body_text(json_array_get(tools, i), "type")) < MT_COUNT(defined))
            mt_fields_note(ask, "tools[].", json_array_get(tools, i), NULL, 0, (const char *const *const[3]){known});
}

/* Tools that run on Anthropic's servers are ignored, with a note. */
bool mt_anthropic_tools(mt_ask *ask, mt_failure *why)
{
    const json_t *tools = mt_body_get(ask->body, "tools");
    json_t *list = json_array();

    mt_ask_own(ask, list);
    if (tools && !json_is_array(tools))
        return mt_failure_set(why, 400, "invalid_type", "tools", "tools: a list is needed, not %s",
                              mt_json_kind(tools));
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *schema = mt_body_get(tool, "input_schema");
        const bool named = json_string_length(json_object_get(tool, "name")) > 0;
        const size_t row = schema ? MT_COUNT(defined) : find_defined(mt_body_text(tool, "type"));

        if (json_is_object(schema) && named)
            json_array_append_new(list, mt_body_tool(tool, schema));
        else if (row < MT_COUNT(defined) && named)
            add_defined(list, tool, row);
        else if (row == MT_COUNT(defined) && json_is_string(mt_body_get(tool, "type")) && !schema)
            mt_ask_ignore(ask, mt_body_text(tool, "type"));
        else
            return mt_failure_set(why, 400, "invalid_value", "tools", "tools.%zu: %s needed", i,
                                  row < MT_COUNT(defined) ? "a name is" : "name and input_schema are");
    }
    note(ask, tools);
    ask->chat.tools = json_array_size(list) ? list : NULL;
    return true;
}
