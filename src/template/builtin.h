/* What is built in: filters, tests, methods and global functions all have one form, and stand in tables. */
#ifndef MT_TEMPLATE_BUILTIN_H
#define MT_TEMPLATE_BUILTIN_H

#include "template/value.h"

#define MT_TPL_PARAMS 6 /* parameters of a builtin at most */
#define MT_TPL_ANY 255  /* .most of one that looks at the arguments itself */
#define MT_TPL_GIVEN(v) ((v).kind != MT_TPL_MISSING)

/* The arguments of a call. */
typedef struct mt_tpl_args {
    const mt_tpl_value *at;
    size_t count;
    const mt_tpl_dict *named; /* NULL when there are none */
} mt_tpl_args;

/* self: what is filtered or tested, the object of a method; nothing for a global. which: the row's. a: the parameters
   in order, MISSING where they were not given. */
typedef bool mt_tpl_builtin_fn(mt_tpl_run *run, mt_tpl_value self, unsigned which, const mt_tpl_value *a,
                               const mt_tpl_args *args, mt_tpl_value *out);

/* The head of such a function. */
#define MT_TPL_BODY(fn)                                                                              \
    static bool fn(MT_UNUSED mt_tpl_run *run, MT_UNUSED mt_tpl_value self, MT_UNUSED unsigned which, \
                   MT_UNUSED const mt_tpl_value *a, MT_UNUSED const mt_tpl_args *args, MT_UNUSED mt_tpl_value *out)

struct mt_tpl_builtin {
    const char *name;
    mt_tpl_builtin_fn *call;
    unsigned which;                   /* of the things that call does, where it does several */
    unsigned char least, most;        /* arguments it takes */
    const char *names[MT_TPL_PARAMS]; /* of parameters that may be named in a call */
};

/* Sorts the arguments into parameters and calls. */
bool mt_tpl_call_builtin(mt_tpl_run *run, const mt_tpl_builtin *builtin, mt_tpl_value self, const mt_tpl_args *args,
                         mt_tpl_value *out);

/* NULL when there is none of that name. */
const mt_tpl_builtin *mt_tpl_filter(const char *name, size_t len);
const mt_tpl_builtin *mt_tpl_test(const char *name, size_t len);
const mt_tpl_builtin *mt_tpl_global(const char *name, size_t len);
const mt_tpl_builtin *mt_tpl_method_of(mt_tpl_value self, const char *name, size_t len);

/* Filters and methods are many; their tables end with a row without a name. */
extern const mt_tpl_builtin mt_tpl_text_filters[], mt_tpl_number_filters[], mt_tpl_sequence_filters[],
    mt_tpl_select_filters[];
extern const mt_tpl_builtin mt_tpl_str_methods[], mt_tpl_str_class_methods[];
const mt_tpl_builtin *mt_tpl_table_find(const mt_tpl_builtin *table, const char *name, size_t len);

/* For the bodies of builtins. *out keeps its value when the argument was not given; the type is checked. */
bool mt_tpl_arg_int(mt_tpl_run *run, mt_tpl_value v, int64_t *out);
bool mt_tpl_arg_str(mt_tpl_run *run, mt_tpl_value v, mt_tpl_str **out);

#endif
