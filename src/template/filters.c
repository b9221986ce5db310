/* Finds a filter by its name in the tables of filters_*.c. */
#include "template/builtin.h"

const mt_tpl_builtin *mt_tpl_filter(const mt_tpl_str *name)
{
    static const mt_tpl_builtin *const tables[] = {mt_tpl_text_filters, mt_tpl_number_filters, mt_tpl_sequence_filters,
                                                   mt_tpl_select_filters};
    const mt_tpl_builtin *found = NULL;

    for (size_t i = 0; !found && i < MT_COUNT(tables); i++)
        found = mt_tpl_table_find(tables[i], name);
    return found;
}
