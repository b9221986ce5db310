/* What the files of the fleet share, called with the fleet's lock held unless said otherwise. */
#ifndef MT_SERVER_FLEET_INSIDE_H
#define MT_SERVER_FLEET_INSIDE_H

#include "server/fleet.h"

/* ---- names: fleet_names.c ---- */

/* At the start: makes members of the models that the options name, and reads their folders. False: *err. */
bool mt_fleet_name(mt_fleet *fleet, mt_error *err) MT_NODISCARD;

/* *why says that there is no model of that name, and names some that there are. Without the lock. Returns false. */
bool mt_fleet_unknown(mt_fleet *fleet, const char *name, mt_failure *why);

/* Reads the folder of one member that was found and not read yet; releases the lock meanwhile. False: all are read. */
bool mt_fleet_read_one(mt_fleet *fleet);

/* ---- what routers are told: fleet_events.c ---- */

bool mt_fleet_publish(mt_fleet *fleet, mt_error *err) MT_NODISCARD; /* at the start: opens the publisher where wanted */
uint64_t mt_fleet_events_memory(const mt_options *opt);             /* bytes that the publisher takes */
mt_kv_events *mt_fleet_events(const mt_fleet *fleet, const mt_member *member) MT_NODISCARD; /* of the member's topic */

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

/* Bytes of the host's memory that it is given, where the device has memory of its own. */
uint64_t mt_fleet_host_memory(const mt_fleet *fleet, const mt_member *member);

/* A member that no call uses and that is to be unloaded for another. NULL: there is none now. Members in use are told
   to yield as soon as they may; *next is no later than that. */
mt_member *mt_fleet_make_way(mt_fleet *fleet, const mt_member *member, uint64_t now, uint64_t *next);

#endif
