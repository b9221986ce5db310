/* Limits of src/constraint and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_CONSTRAINT_LIMITS_H
#define MT_CONSTRAINT_LIMITS_H

/* what models write */
#define MT_LIMIT_PARSE_NAME 256 /* bytes of the name of a tool, of an argument, of an id */

/* constraints */
#define MT_LIMIT_GRAMMAR_NODES (1u << 20)    /* expressions of a grammar */
#define MT_LIMIT_GRAMMAR_BYTES (32u << 20)   /* bytes of the texts in a grammar */
#define MT_LIMIT_GRAMMAR_TEXT (8u << 20)     /* bytes of a grammar in GBNF */
#define MT_LIMIT_PROGRAM_CODE (1u << 20)     /* instructions that a grammar is compiled to */
#define MT_LIMIT_GRAMMAR_NESTING 100         /* brackets in a regular expression or in GBNF */
#define MT_LIMIT_GRAMMAR_SEARCH 8192         /* bytes of all markers that are looked for at once */
#define MT_LIMIT_GRAMMAR_FRAMES 256          /* nesting of rules; JSON takes three or four for each level */
#define MT_LIMIT_GRAMMAR_EMPTY_REPEAT 32     /* rounds of a repetition of something that may be empty */
#define MT_LIMIT_AUTOMATON_STATES 4096       /* states of a constraint that are kept at once */
#define MT_LIMIT_AUTOMATON_STACKS (1u << 14) /* frames of all these states */
#define MT_LIMIT_AUTOMATON_PLACES (1u << 16) /* places of one state */
#define MT_LIMIT_CONSTRAINT_RUNS 8192        /* answers that follow one constraint at a time */
#define MT_LIMIT_CONSTRAINT_MS 2000          /* milliseconds of processor time for compiling one */
#define MT_LIMIT_CHOICE_LIST (1u << 20)      /* texts of a "choice" constraint */
#define MT_LIMIT_REGEX_NODES 4096            /* nodes of regular expressions that have to match together */
#define MT_LIMIT_REGEX_CATEGORIES 8          /* Unicode categories in a regular expression */
#define MT_LIMIT_REGEX_WORK (4u << 20) /* nodes and formulas visited to make the automaton of a regular expression */
#define MT_LIMIT_REGEX_WORK_ALL (12u << 20) /* the same for all of a constraint: about half a second */
#define MT_LIMIT_SCHEMA_PATTERNS 256        /* regular expressions of a schema */
#define MT_LIMIT_SCHEMA_MEMBERS 200000      /* properties in all places of a schema */
#define MT_LIMIT_AUTOMATON_WORK (1u << 20)  /* places visited to make one mask: about 40 ms */
#define MT_LIMIT_REGEX_STATES 16384         /* states of the automaton of regular expressions */
#define MT_LIMIT_SCHEMA_RULES (1u << 16)    /* different places of a schema */
#define MT_LIMIT_SCHEMA_COMBINED 4096       /* of these, places to which several of its schemas apply */
#define MT_LIMIT_SCHEMA_PARTS 128           /* schemas that apply to one place together */
#define MT_LIMIT_SCHEMA_STRINGS 24          /* of these, schemas about strings */
#define MT_LIMIT_SCHEMA_KEY_PATTERNS 24     /* patternProperties of one object */
#define MT_LIMIT_SCHEMA_ONE_OF 512          /* alternatives of a oneOf */
#define MT_LIMIT_SCHEMA_COMPARED (1u << 20) /* pairs of schemas that are compared */
#define MT_LIMIT_SCHEMA_APART (1u << 26)    /* steps to find out whether schemas of a oneOf exclude each other */
#define MT_LIMIT_SCHEMA_JUDGED (1u << 24)   /* steps to find which listed values are valid */
#define MT_LIMIT_SCHEMA_SOUGHT (1u << 24)   /* values looked at to find what references name by $anchor or $id */
#define MT_LIMIT_SCHEMA_PATH 512            /* bytes of a place's name in an error */
#define MT_LIMIT_SCHEMA_PROPERTIES 2048     /* of an object, or schemas in the prefixItems of an array */
#define MT_LIMIT_SCHEMA_COUNTED 20000       /* rules of an object or array: its length times how far it counts */

#endif
