/* What kind of content a file has, by its name. */
#ifndef MT_FILES_TYPES_H
#define MT_FILES_TYPES_H

/* The media type of a file: the one that was given, unless that is empty or says nothing (application/octet-stream);
   else the one of the name's ending. The result is `given` or a constant. */
const char *mt_files_type(const char *given, const char *name);

#endif
