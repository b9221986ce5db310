/* The values of a rendering. Values are small and copied; what they point to lives in the run's arena (constants: in
   the template's) and never changes, except namespaces and what has a state: generators, loops, cyclers and joiners. */
#ifndef MT_TEMPLATE_VALUE_H
#define MT_TEMPLATE_VALUE_H

#include "template/str.h"

/* An operator: its character, or one of these where it has more. */
typedef unsigned mt_tpl_operator;
enum { MT_TPL_FLOORDIV = 128, MT_TPL_POW, MT_TPL_EQ, MT_TPL_NE, MT_TPL_GE, MT_TPL_LE, MT_TPL_IN, MT_TPL_NOT_IN };

typedef enum mt_tpl_kind {
    MT_TPL_MISSING, /* no value: an unbound variable, an argument not given; templates never see it */
    MT_TPL_UNDEFINED,
    MT_TPL_NONE,
    MT_TPL_BOOL,
    MT_TPL_INT,
    /* An integer of more than 64 bits: shown and compared, not computed with; as.str has its digits */
    MT_TPL_BIG,
    MT_TPL_FLOAT,
    MT_TPL_STR,
    MT_TPL_LIST,
    MT_TPL_TUPLE,
    MT_TPL_DICT,
    MT_TPL_RANGE,
    MT_TPL_VIEW,      /* dict.keys(), .values(), .items() */
    MT_TPL_ITER,      /* a generator */
    MT_TPL_NAMESPACE, /* as.dict has its attributes */
    MT_TPL_MACRO,
    MT_TPL_LOOP,
    MT_TPL_SELF,  /* the blocks of the template */
    MT_TPL_BLOCK, /* a block, to be called */
    MT_TPL_CYCLER,
    MT_TPL_JOINER,
    MT_TPL_FUNCTION, /* a global such as range */
    MT_TPL_METHOD    /* a method with its object */
} mt_tpl_kind;

#define MT_TPL_KIND(name) (1u << MT_TPL_##name) /* a bit for sets of kinds */

typedef struct mt_tpl_value {
    mt_tpl_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        mt_tpl_str *str;
        const struct mt_tpl_undefined *undefined;
        const struct mt_tpl_list *list; /* of lists and tuples */
        struct mt_tpl_dict *dict;
        const struct mt_tpl_range *range;
        const struct mt_tpl_view *view;
        struct mt_tpl_iter *iter;
        const struct mt_tpl_macro *macro;
        struct mt_tpl_loop *loop;
        const struct mt_tpl_node *block;
        struct mt_tpl_cycler *cycler;
        struct mt_tpl_joiner *joiner;
        const struct mt_tpl_builtin *function;
        const struct mt_tpl_method *method;
        const void *any; /* any of the pointers */
    } as;
} mt_tpl_value;

/* Why a value is undefined: what an operation on it fails with. */
typedef struct mt_tpl_undefined {
    const char *hint;    /* the message itself; NULL: made of object and name */
    mt_tpl_value object; /* which lacks the name; MISSING: a variable is missing */
    mt_tpl_value name;
} mt_tpl_undefined;

/* An array of items that is being filled. Appending to the newest list of an array is cheap, as with the room of
   strings (str.h). */
typedef struct mt_tpl_items {
    mt_tpl_value *at;
    size_t count, cap;
} mt_tpl_items;

typedef struct mt_tpl_list {
    const mt_tpl_value *at;
    size_t count;
    mt_tpl_items *room; /* NULL: it cannot grow */
    bool group;         /* a tuple of groupby, with the attributes grouper and list */
} mt_tpl_list;

typedef struct mt_tpl_entry {
    mt_tpl_value key, value;
    uint64_t hash;
} mt_tpl_entry;

/* Keeps the order in which keys were first set. */
typedef struct mt_tpl_dict {
    mt_tpl_entry *at;
    size_t count, cap;
    uint32_t *index; /* hash table of entry numbers + 1; NULL while there are few */
    size_t slots;    /* of index */
    size_t watched;  /* 1 + its index in the watched list (watch.h); 0: not in it */
} mt_tpl_dict;

typedef struct mt_tpl_range {
    int64_t start, stop, step;
    size_t count;
} mt_tpl_range;

typedef enum mt_tpl_part { MT_TPL_KEYS, MT_TPL_VALUES, MT_TPL_ITEMS } mt_tpl_part;

typedef struct mt_tpl_view {
    const mt_tpl_dict *dict;
    mt_tpl_part part;
} mt_tpl_view;

typedef struct mt_tpl_cycler {
    const mt_tpl_list *items;
    size_t at;
} mt_tpl_cycler;

typedef struct mt_tpl_joiner {
    mt_tpl_value separator;
    bool used;
} mt_tpl_joiner;

typedef struct mt_tpl_method {
    mt_tpl_value self;
    const struct mt_tpl_builtin *call;
} mt_tpl_method;

/* Values. */

#define MT_TPL_IS_INT(v) ((v).kind == MT_TPL_INT || (v).kind == MT_TPL_BOOL) /* as in Python, a bool is an int */
#define MT_TPL_IS_NUMBER(v) (MT_TPL_IS_INT(v) || (v).kind == MT_TPL_BIG || (v).kind == MT_TPL_FLOAT)

mt_tpl_value mt_tpl_none(void);
mt_tpl_value mt_tpl_bool(bool b);
mt_tpl_value mt_tpl_int(int64_t i);
mt_tpl_value mt_tpl_float(double d);
mt_tpl_value mt_tpl_const(const mt_tpl_str *s); /* a string that nobody will change */
mt_tpl_value mt_tpl_dict_value(mt_tpl_dict *dict);
int64_t mt_tpl_as_int(mt_tpl_value v); /* of an INT or BOOL */

/* Functions named mt_tpl_set... return false only where the run has failed, which mt_tpl_set never does.
   mt_tpl_set_str: a string of NULL is a failure. mt_tpl_set_new: a value that points to a copy of `what`.
   mt_tpl_set_list: a list or tuple with a copy of the items. */
bool mt_tpl_set(mt_tpl_value *out, mt_tpl_value v);
bool mt_tpl_set_bool(mt_tpl_run *run, mt_tpl_value *out, bool b);
bool mt_tpl_set_str(mt_tpl_value *out, mt_tpl_str *s);
bool mt_tpl_set_new(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_kind kind, const void *what, size_t size);
bool mt_tpl_set_list(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_kind kind, const mt_tpl_value *items, size_t count);
bool mt_tpl_set_lit(mt_tpl_run *run, mt_tpl_value *out, const char *text);
bool mt_tpl_set_undefined(mt_tpl_run *run, mt_tpl_value *out, const char *hint);
bool mt_tpl_set_undefined_in(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_value object, mt_tpl_value name);
bool mt_tpl_set_tuple2(mt_tpl_run *run, mt_tpl_value *out, mt_tpl_value first, mt_tpl_value second);

/* Sets *out where the name is `is`. */
void mt_tpl_offer(mt_tpl_value *out, const mt_tpl_str *name, const char *is, mt_tpl_value v);

/* Fails the run with the message of an undefined value. */
bool mt_tpl_fail_undefined(mt_tpl_run *run, mt_tpl_value v);

bool mt_tpl_truth(mt_tpl_value v);
const char *mt_tpl_type(mt_tpl_value v); /* Python's type(v).__name__ */

/* The number of items; false where Python has no len() for it. */
bool mt_tpl_length(mt_tpl_value v, size_t *out);

/* Lists. */

bool mt_tpl_items_add(mt_tpl_run *run, mt_tpl_items *items, mt_tpl_value v);
bool mt_tpl_items_end(mt_tpl_run *run, mt_tpl_items *items, mt_tpl_kind kind, mt_tpl_value *out);
bool mt_tpl_list_concat(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out); /* both of one kind */

/* Dicts. */

mt_tpl_dict *mt_tpl_dict_new(mt_tpl_run *run, size_t count) MT_NODISCARD;
bool mt_tpl_dict_set(mt_tpl_run *run, mt_tpl_dict *d, mt_tpl_value key, mt_tpl_value value);
bool mt_tpl_dict_update(mt_tpl_run *run, mt_tpl_dict *d, const mt_tpl_dict *from); /* sets all entries of another */

/* MISSING: there is no such key, or the run has failed, such as for a key that cannot be one. */
mt_tpl_value mt_tpl_dict_get(mt_tpl_run *run, const mt_tpl_dict *d, mt_tpl_value key);

/* The value of a name, or MISSING; d may be NULL, which has none. */
mt_tpl_value mt_tpl_dict_name(mt_tpl_run *run, const mt_tpl_dict *d, const mt_tpl_str *name);

#endif
