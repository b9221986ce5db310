/* What the files of the fleet share. What is for the start is called before the fleet's thread begins, without the
   fleet's lock; the rest with the lock held unless said otherwise. */
#ifndef MT_SERVER_FLEET_FLEET_INSIDE_H
#define MT_SERVER_FLEET_FLEET_INSIDE_H

#include "server/fleet/fleet.h"

/* ---- names: fleet_names.c ---- */

/* At the start: makes members of the models that the options name, and reads their folders; where they name none, of
   the models found on this machine. False: *err. */
bool mt_fleet_name(mt_fleet *fleet, mt_error *err) MT_NODISCARD;

/* *why says that there is no model of that name, and names some that there are, or that it is being fetched. Without
   the lock. Returns false. */
bool mt_fleet_unknown(mt_fleet *fleet, const char *name, mt_failure *why);

/* Reads the folder of one member that was found and not read yet; releases the lock meanwhile. False: all are read. */
bool mt_fleet_read_one(mt_fleet *fleet);

/* ---- models that come and go by request: fleet_change.c ---- */

/* Whether a model of that name (NULL: none) is being fetched; then *why says how far that is. */
bool mt_fleet_fetched(const mt_fleet *fleet, const char *name, mt_failure *why);

/* A member that was found is not there any more, or not all of it: it leaves the list, and is unloaded when idle. */
void mt_member_set_gone(mt_member *member);

/* ---- what routers are told: fleet_events.c; none of it needs the lock ---- */

bool mt_fleet_publish(mt_fleet *fleet, mt_error *err) MT_NODISCARD; /* at the start: opens the publisher where wanted */
uint64_t mt_fleet_events_memory(const mt_options *opt);             /* bytes that the publisher takes */

/* Where there is a publisher: what tells it of the member's cache, under the member's topic. Free with
   mt_kv_events_free. */
mt_kv_events *mt_fleet_events(const mt_fleet *fleet, const mt_member *member) MT_NODISCARD;

/* ---- memory: fleet_room.c ---- */

/* At the start: opens the host's threads, and decides how much memory there is and what of it is no model's. False:
   *err. */
bool mt_fleet_share_out(mt_fleet *fleet, mt_error *err) MT_NODISCARD;

/* Whether the member could be loaded if it were the only one. False: *err. */
bool mt_fleet_fits(const mt_fleet *fleet, const mt_member *member, mt_error *err) MT_NODISCARD;

uint64_t mt_fleet_free(const mt_fleet *fleet); /* bytes that no model has been given */

/* Bytes that must be free before a member is loaded: what it needs; where that is a guess, at most all there is for
   models. */
uint64_t mt_fleet_need(const mt_fleet *fleet, const mt_member *member);

/* Bytes that a member which is about to be loaded is given: at least what it needs. */
uint64_t mt_fleet_grant(const mt_fleet *fleet, const mt_member *member);

/* Bytes of the host's memory that the same member is given, where the device has memory of its own; for one alone, the
   value of --host-memory. The fleet's thread needs no lock for it: no other changes grants. */
uint64_t mt_fleet_host_memory(const mt_fleet *fleet, const mt_member *member);

/* A member that no call uses and that is to be unloaded for another. NULL: there is none now. Members in use are told
   to yield where they may already (invariant 5 in fleet.c); *next is lowered to when the first of the others may. Both
   times are of mt_clock_ns. */
mt_member *mt_fleet_make_way(mt_fleet *fleet, const mt_member *member, uint64_t now, uint64_t *next);

#endif
