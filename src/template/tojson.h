/* Writes values as JSON, as Python's json.dumps does. */
#ifndef MT_TEMPLATE_TOJSON_H
#define MT_TEMPLATE_TOJSON_H

#include "template/value.h"

typedef struct mt_tpl_json_style {
    bool ascii;                    /* escape all characters outside of ASCII */
    bool sort;                     /* sort keys */
    const mt_tpl_str *indent;      /* of one level; NULL: all on one line */
    const mt_tpl_str *item, *pair; /* separators; NULL: Python's */
} mt_tpl_json_style;

/* NULL: the run has failed. */
mt_tpl_str *mt_tpl_to_json(mt_tpl_run *run, mt_tpl_value v, const mt_tpl_json_style *style) MT_NODISCARD;

#endif
