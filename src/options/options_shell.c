/* Writes scripts with which bash, zsh and fish complete command lines of motet, from the tables of options and
   commands. */
#include <string.h>

#include "options/options_table.h"

/* The completions of a value or operand. */
typedef enum value_kind { VALUE_ANY, VALUE_WORDS, VALUE_FILE, VALUE_FOLDER, VALUE_MODEL, VALUE_COMMAND } value_kind;

/* A shell command that prints the names of the models on this machine, one a line. */
#define MODELS "motet list 2>/dev/null | awk 'NR > 1 { print $1 }'"

/* The kind of a command's operands, by their names in the help. */
static value_kind kind_of_operand(mt_command command)
{
    const char *operand = mt_command_rows[command].operand;

    if (strstr(operand, "COMMAND"))
        return VALUE_COMMAND;
    if (strstr(operand, "TEMPLATE"))
        return VALUE_FILE;
    return strstr(operand, "DIR") || strstr(operand, "MODEL") || strstr(operand, "NAME") ? VALUE_MODEL : VALUE_ANY;
}

/* The kind of an option's values, by its placeholder in the help, such as FILE. */
static value_kind kind_of_option(const mt_option_row *row)
{
    if (row->type == MT_OPTION_CHOICE)
        return VALUE_WORDS;
    if (row->values && strcmp(row->values, "FILE") == 0)
        return VALUE_FILE;
    return row->values && (strcmp(row->values, "DIR") == 0 || strcmp(row->values, "FOLDER") == 0) ? VALUE_FOLDER
                                                                                                  : VALUE_ANY;
}

/* The choices of an option, with blanks between them. */
static void add_words(mt_buf *out, const char *choices)
{
    for (const char *p = choices; *p; p++)
        mt_buf_add(out, *p == '|' ? " " : p, 1);
}

/* How a shell completes the values of an option; forms: by their kind, the end of words being in `end`. */
static void add_value(mt_buf *out, const mt_option_row *row, const char *const *forms, const char *end)
{
    mt_buf_puts(out, forms[kind_of_option(row)]);
    if (row->type != MT_OPTION_CHOICE)
        return;
    add_words(out, row->values);
    mt_buf_puts(out, end);
}

static void add_command_names(mt_buf *out)
{
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++)
        mt_buf_printf(out, "%s ", mt_command_rows[i].name);
}

/* The first part of a help text, for use within single quotes. quote: what a quote in it is replaced by; before: the
   characters that get a backslash. */
static void add_brief(mt_buf *out, const char *help, const char *quote, const char *before)
{
    const size_t len = strcspn(help, ";");

    for (size_t i = 0; i < len; i++) {
        if (help[i] == '\'')
            mt_buf_puts(out, quote);
        else
            mt_buf_printf(out, "%s%c", strchr(before, help[i]) ? "\\" : "", help[i]);
    }
}

/* Writes cases of a bash script: the options of a command whose values are of that kind. */
static void add_bash_kind(mt_buf *out, mt_command command, value_kind kind, const char *name)
{
    const char *between = "        ";

    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];

        if (!mt_option_applies(row, command) || row->type == MT_OPTION_FLAG || kind_of_option(row) != kind)
            continue;
        mt_buf_printf(out, "%s--%s", between, row->name);
        between = " | ";
        if (kind == VALUE_WORDS) {
            mt_buf_puts(out, ") kind=words words='");
            add_words(out, row->values);
            mt_buf_puts(out, "' ;;\n");
            between = "        ";
        }
    }
    if (kind != VALUE_WORDS && between[0] == ' ' && between[1] == '|')
        mt_buf_printf(out, ") kind=%s ;;\n", name);
}

static void add_bash_command(mt_buf *out, mt_command command)
{
    static const char *const operands[] = {
        [VALUE_ANY] = "none", [VALUE_FILE] = "file", [VALUE_MODEL] = "model", [VALUE_COMMAND] = "command"};
    const mt_command_row *row = &mt_command_rows[command];

    mt_buf_printf(out, "    %s)\n        operand=%s options='", row->name, operands[kind_of_operand(command)]);
    for (size_t i = 0; i < mt_option_count; i++)
        if (mt_option_applies(&mt_option_rows[i], command))
            mt_buf_printf(out, "--%s ", mt_option_rows[i].name);
    mt_buf_puts(out, "'\n        case $before in\n");
    add_bash_kind(out, command, VALUE_WORDS, "words");
    add_bash_kind(out, command, VALUE_FILE, "file");
    add_bash_kind(out, command, VALUE_FOLDER, "folder");
    add_bash_kind(out, command, VALUE_ANY, "any");
    mt_buf_puts(out, "        esac\n        ;;\n");
}

void mt_options_bash(mt_buf *out)
{
    mt_buf_puts(out, "# Completes motet's command lines in bash; written by motet help --as bash.\n"
                     "_motet()\n{\n"
                     "    local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
                     "    local kind= words= options= operand=\n"
                     "    COMPREPLY=()\n"
                     "    # bash takes --name=value apart\n"
                     "    if [[ $now == = ]]; then\n        now=\n"
                     "    elif [[ $before == = ]]; then\n        before=${COMP_WORDS[COMP_CWORD - 2]}\n    fi\n"
                     "    if ((COMP_CWORD == 1)); then\n        mapfile -t COMPREPLY < <(compgen -W '");
    add_command_names(out);
    mt_buf_puts(out, "--help --version' -- \"$now\")\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++)
        add_bash_command(out, (mt_command)i);
    mt_buf_puts(out, "    esac\n"
                     "    if [[ -z $kind && $now == -* ]]; then\n        kind=words words=$options\n    fi\n"
                     "    case ${kind:-$operand} in\n"
                     "    words) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$now\") ;;\n"
                     "    command) mapfile -t COMPREPLY < <(compgen -W '");
    add_command_names(out);
    mt_buf_puts(out, "config' -- \"$now\") ;;\n"
                     "    file)\n        compopt -o filenames 2>/dev/null\n"
                     "        mapfile -t COMPREPLY < <(compgen -f -- \"$now\")\n        ;;\n"
                     "    folder)\n        compopt -o filenames 2>/dev/null\n"
                     "        mapfile -t COMPREPLY < <(compgen -d -- \"$now\")\n        ;;\n"
                     "    model)\n        compopt -o filenames 2>/dev/null\n"
                     "        words=$(" MODELS ")\n"
                     "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$now\"; compgen -d -- \"$now\")\n"
                     "        ;;\n"
                     "    esac\n}\ncomplete -F _motet motet\n");
}

static void add_zsh_value(mt_buf *out, const mt_option_row *row)
{
    static const char *const forms[] = {
        [VALUE_ANY] = " ", [VALUE_WORDS] = "(", [VALUE_FILE] = "_files", [VALUE_FOLDER] = "_files -/"};

    mt_buf_puts(out, ":");
    for (const char *p = row->type == MT_OPTION_CHOICE ? "" : row->values; *p; p++)
        mt_buf_printf(out, "%s%c", *p == ':' ? "\\" : "", *p);
    mt_buf_puts(out, ":");
    add_value(out, row, forms, ")");
}

static void add_zsh_command(mt_buf *out, mt_command command)
{
    static const char *const operands[] = {[VALUE_ANY] = "",
                                           [VALUE_FILE] = "'*:file:_files'",
                                           [VALUE_MODEL] = "'*:model:_motet_models'",
                                           [VALUE_COMMAND] = "'1:command:->command'"};
    const char *operand = operands[kind_of_operand(command)];

    mt_buf_printf(out, "    %s)\n        _arguments", mt_command_rows[command].name);
    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];

        if (!mt_option_applies(row, command))
            continue;
        mt_buf_printf(out, " \\\n            '%s--%s%s[", row->type == MT_OPTION_LIST ? "*" : "", row->name,
                      row->values ? "=" : "");
        add_brief(out, row->help, "'\\''", "[]\\");
        mt_buf_puts(out, "]");
        if (row->values)
            add_zsh_value(out, row);
        mt_buf_puts(out, "'");
    }
    mt_buf_printf(out, "%s%s\n        ;;\n", *operand ? " \\\n            " : "", operand);
}

void mt_options_zsh(mt_buf *out)
{
    mt_buf_puts(out, "#compdef motet\n# Completes motet's command lines in zsh; written by motet help --as zsh.\n"
                     "_motet_models() {\n    compadd -- ${(f)\"$(" MODELS ")\"}\n    _files -/\n}\n"
                     "_motet() {\n    local state command\n    local -a commands\n    commands=(\n");
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++) {
        mt_buf_printf(out, "        '%s:", mt_command_rows[i].name);
        add_brief(out, mt_command_rows[i].help, "'\\''", ":\\");
        mt_buf_puts(out, "'\n");
    }
    mt_buf_puts(out,
                "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi\n"
                "    command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n");
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++)
        add_zsh_command(out, (mt_command)i);
    mt_buf_puts(out, "    esac\n    [[ $state != command ]] || _describe command commands\n}\n"
                     "if [[ $funcstack[1] == _motet ]]; then\n    _motet \"$@\"\nelse\n    compdef _motet motet\nfi\n");
}

static void add_fish_command(mt_buf *out, mt_command command)
{
    static const char *const operands[] = {[VALUE_ANY] = "",
                                           [VALUE_FILE] = "-F",
                                           [VALUE_MODEL] = "-a '(__fish_motet_models; __fish_complete_directories)'",
                                           [VALUE_COMMAND] = "-a '(__fish_motet_commands)'"};
    /* How values of options are completed */
    static const char *const forms[] = {[VALUE_ANY] = " -x",
                                        [VALUE_WORDS] = " -x -a '",
                                        [VALUE_FILE] = " -r -F",
                                        [VALUE_FOLDER] = " -x -a '(__fish_complete_directories)'"};
    const mt_command_row *command_row = &mt_command_rows[command];
    const char *operand = operands[kind_of_operand(command)];

    if (*operand)
        mt_buf_printf(out, "complete -c motet -n '__fish_motet_is %s' %s\n", command_row->name, operand);
    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];

        if (!mt_option_applies(row, command))
            continue;
        mt_buf_printf(out, "complete -c motet -n '__fish_motet_is %s' -l %s", command_row->name, row->name);
        if (row->values)
            add_value(out, row, forms, "'");
        mt_buf_puts(out, " -d '");
        add_brief(out, row->help, "\\'", "\\");
        mt_buf_puts(out, "'\n");
    }
}

void mt_options_fish(mt_buf *out)
{
    mt_buf_puts(out, "# Completes motet's command lines in fish; written by motet help --as fish.\n"
                     "function __fish_motet_is\n    set -l words (commandline -opc)\n"
                     "    test (count $words) -ge 2; and test $words[2] = $argv[1]\nend\n"
                     "function __fish_motet_models\n    " MODELS "\nend\n"
                     "function __fish_motet_commands\n    string split ' ' '");
    add_command_names(out);
    mt_buf_puts(out, "config'\nend\ncomplete -c motet -f\n");
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++) {
        mt_buf_printf(out, "complete -c motet -n 'test (count (commandline -opc)) -eq 1' -a %s -d '",
                      mt_command_rows[i].name);
        add_brief(out, mt_command_rows[i].help, "\\'", "\\");
        mt_buf_puts(out, "'\n");
        add_fish_command(out, (mt_command)i);
    }
}
