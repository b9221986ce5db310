/* What the files of the fleet share. All under its lock but where it is said to be otherwise. */
#ifndef MT_SERVER_FLEET_INSIDE_H
#define MT_SERVER_FLEET_INSIDE_H

#include "server/fleet.h"

/* ---- names: fleet_names.c ---- */

/* At the start: the members that the command line names, whose folders are looked at. False with a sentence. */
bool mt_fleet_name(mt_fleet *fleet, mt_error *err) MT_NODISCARD;

/* Says that there is no such model, and which there are. Without the lock. */
bool mt_fleet_unknown(mt_fleet *fleet, const char *name, mt_failure *why);

/* Looks at the folder of a member that was found, which gives the lock away. False: all are known. */
bool mt_fleet_read_one(mt_fleet *fleet);

/* ---- what routers are told: fleet_events.c ---- */

bool mt_fleet_publish(mt_fleet *fleet, mt_error *err) MT_NODISCARD; /* at the start, where that is wanted */
uint64_t mt_fleet_events_memory(const mt_options *opt);             /* bytes that it takes */
mt_kv_events *mt_fleet_events(const mt_fleet *fleet, const mt_member *member) MT_NODISCARD; /* its own */

/* ---- memory: fleet_room.c ---- */

/* At the start: the device, what there is of memory, and what of it is no model's. False with a sentence. */
bool mt_fleet_share_out(mt_fleet *fleet, mt_error *err) MT_NODISCARD;

/* Whether it could be opened if it were alone. False with a sentence. */
bool mt_fleet_fits(const mt_fleet *fleet, const mt_member *member, mt_error *err) MT_NODISCARD;

uint64_t mt_fleet_free(const mt_fleet *fleet); /* bytes that no model has */

/* What must be free to open a member: what it needs, or, where that is a guess, no more than there is for models. */
uint64_t mt_fleet_need(const mt_fleet *fleet, const mt_member *member);

/* What a member that is about to be opened gets, at least what it needs. */
uint64_t mt_fleet_grant(const mt_fleet *fleet, const mt_member *member);

/* What it gets of the host's memory, where the device has its own. */
uint64_t mt_fleet_host_memory(const mt_fleet *fleet, const mt_member *member);

/* Who has to go for a member to be opened: one that nobody uses. NULL: none is such now; those that are used yield, as
   soon as they may, and *next is no later than that. */
mt_member *mt_fleet_make_way(mt_fleet *fleet, const mt_member *member, uint64_t now, uint64_t *next);

#endif
