/* Dates as Python's datetime.strftime writes them. */
#ifndef MT_TEMPLATE_STRFTIME_H
#define MT_TEMPLATE_STRFTIME_H

#include "template/str.h"

/* The time of the render, in this format; NULL when the run has failed. */
mt_tpl_str *mt_tpl_strftime(mt_tpl_run *run, const mt_tpl_str *format) MT_NODISCARD;

#endif
