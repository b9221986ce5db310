/* What a checkpoint holds, as text or JSON on standard output. */
#ifndef MT_CLI_INFO_H
#define MT_CLI_INFO_H

#include "models/info.h"

void mt_info_print(const mt_info *info);
void mt_info_print_json(const mt_info *info, const char *name); /* by which it was found; NULL: by its folder */

#endif
