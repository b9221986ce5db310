/* Builtins: filters, tests, methods and global functions. All have one form and stand in tables. */
#ifndef MT_TEMPLATE_BUILTIN_H
#define MT_TEMPLATE_BUILTIN_H

#include "template/value.h"

#define MT_TPL_PARAMS 6 /* most parameters of a builtin */
#define MT_TPL_ANY 255  /* `most` of a builtin that examines its arguments itself */
#define MT_TPL_GIVEN(v) ((v).kind != MT_TPL_MISSING)

/* The values of the arguments of a call. */
typedef struct mt_tpl_args {
    const mt_tpl_value *at;
    size_t count;
    const mt_tpl_dict *named; /* NULL: none */
} mt_tpl_args;

/* A builtin's function. self: the value that is filtered or tested, or the object of a method; unset for globals.
   which: from the builtin's row. a: the parameters in order, MISSING where not given. False: the run has failed; true
   may be returned then, too. */
typedef bool mt_tpl_builtin_fn(mt_tpl_run *run, mt_tpl_value self, unsigned which, const mt_tpl_value *a,
                               const mt_tpl_args *args, mt_tpl_value *out);

/* The head of such a function's definition. */
#define MT_TPL_BODY(fn)                                                                              \
    static bool fn(MT_UNUSED mt_tpl_run *run, MT_UNUSED mt_tpl_value self, MT_UNUSED unsigned which, \
                   MT_UNUSED const mt_tpl_value *a, MT_UNUSED const mt_tpl_args *args, MT_UNUSED mt_tpl_value *out)

typedef struct mt_tpl_builtin {
    const char *name;
    mt_tpl_builtin_fn *call;
    unsigned which;                   /* tells apart the builtins that share a function */
    unsigned char least, most;        /* how many arguments it accepts */
    const char *names[MT_TPL_PARAMS]; /* of its parameters, for named arguments */
} mt_tpl_builtin;

/* Binds the arguments to the parameters and calls the builtin. False: the run has failed. */
bool mt_tpl_call_builtin(mt_tpl_run *run, const mt_tpl_builtin *builtin, mt_tpl_value self, const mt_tpl_args *args,
                         mt_tpl_value *out);

/* The builtin of that name; NULL: there is none. */
const mt_tpl_builtin *mt_tpl_filter(const mt_tpl_str *name);
const mt_tpl_builtin *mt_tpl_test(const mt_tpl_str *name);
const mt_tpl_builtin *mt_tpl_global(const mt_tpl_str *name);
const mt_tpl_builtin *mt_tpl_method_of(mt_tpl_value self, const mt_tpl_str *name);

/* Tables of filters and methods, each ended by a row without a name. */
extern const mt_tpl_builtin mt_tpl_text_filters[], mt_tpl_number_filters[], mt_tpl_sequence_filters[],
    mt_tpl_select_filters[];
extern const mt_tpl_builtin mt_tpl_str_methods[], mt_tpl_str_class_methods[];
const mt_tpl_builtin *mt_tpl_table_find(const mt_tpl_builtin *table, const mt_tpl_str *name);

/* For functions of builtins: an argument of that type. otherwise: where it is MISSING, and where it is of another type,
   which fails the run. mt_tpl_not_none: MISSING for None. */
int64_t mt_tpl_arg_int(mt_tpl_run *run, mt_tpl_value v, int64_t otherwise);
mt_tpl_str *mt_tpl_arg_str(mt_tpl_run *run, mt_tpl_value v, mt_tpl_str *otherwise);
mt_tpl_value mt_tpl_not_none(mt_tpl_value v);

#endif
