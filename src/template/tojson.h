/* Values as JSON, written as Python's json.dumps writes it. */
#ifndef MT_TEMPLATE_TOJSON_H
#define MT_TEMPLATE_TOJSON_H

#include "template/value.h"

typedef struct mt_tpl_json_style {
    bool ascii;                    /* escape everything else */
    bool sort;                     /* keys */
    const mt_tpl_str *indent;      /* of one level; NULL: all on one line */
    const mt_tpl_str *item, *pair; /* separators; NULL: Python's */
} mt_tpl_json_style;

mt_tpl_str *mt_tpl_to_json(mt_tpl_run *run, mt_tpl_value v, const mt_tpl_json_style *style) MT_NODISCARD;

#endif
