/* The version of the program. */
#ifndef MT_BASE_VERSION_H
#define MT_BASE_VERSION_H

extern const char mt_version[]; /* "0.1.0" */

/* "4fdf153 2026-11-16": the commit it was built from, with a + where files were changed since, and its day; "unknown"
   where neither git nor .tarball-version tells. */
extern const char mt_version_source[];

#endif
