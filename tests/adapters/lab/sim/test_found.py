"""Schedules that the simulator found and shrank: each broke a rule once, and must never again."""

from typing import Any

import attrs
import pytest

from stablecast.core.protocol.generations import NONE
from stablecast.core.protocol.quorum import GroupRules, Intergroup, Intragroup
from stablecast.core.protocol.settings import AckMode
from stablecast.lab.sim.runner import run
from stablecast.lab.sim.schedule import Act, Fault, Schedule
from stablecast.lab.sim.setup import Habit, Leaving, WorldSetup

THWARTED = Schedule(
    472661,
    ((524, 2), (669, 30), (2881, 40)),
    (
        Fault(1, Act.PART, "source", "store1", 549, False),
        Fault(544, Act.PART, "source", "", 1004, False),
        Fault(544, Act.PART, "source", "store2", 2882, False),
        Fault(545, Act.RIVAL, "source", "", 1610, True),
        Fault(1744, Act.SLOW, "store1", "", 37, False),
        Fault(1818, Act.STALL, "source", "store1", 480, False),
    ),
    WorldSetup(
        rules=GroupRules((1, 1, 1), Intragroup.QUORUM, Intergroup.MAJORITY),
        brief=True,
        habit=Habit.BLOCKING,
    ),
)
"""A rival registers with a minority, sends and dies; the stores take the first life back."""

FOUND = {
    # A crash between a new life's resume point and its receivers' cut-backs left receivers acknowledged too far (D1).
    "half_a_resume": Schedule(
        344,
        (
            (231, 1),
            (752, 1),
            (966, 1),
            (1141, 1),
            (1681, 15),
            (1692, 1),
            (1733, 1),
            (1844, 1),
            (2849, 8),
            (2896, 3),
            (2909, 34),
            (2994, 1),
            (3055, 40),
        ),
        (
            Fault(1680, Act.SLOW, "store2", "receiver1", 2320, False),
            Fault(2904, Act.STALL, "source", "store1", 120, False),
            Fault(2904, Act.STALL, "source", "store2", 120, False),
            Fault(2994, Act.PART, "store0", "", 1006, True),
            Fault(2998, Act.CRASH, "source", "", 34, True),
            Fault(3328, Act.CRASH, "store2", "receiver1", 7, False),
        ),
    ),
    # A replaced life of the source woke up after its successor's end and had that one's stable messages cut (S3).
    "replaced_life_returns": Schedule(
        155,
        ((3766, 1),),
        (
            Fault(458, Act.TAKEOVER, "source", "store1", 2448, True),
            Fault(3785, Act.CRASH, "source", "", 80, True),
        ),
    ),
    # A grant read only after its lease was over was counted on while another life held the RegID (R1).
    "late_grant": Schedule(
        1448,
        (),
        (Fault(157, Act.TAKEOVER, "source", "", 2510, True),),
    ),
    # A life came back to a store where another had registered and sent nothing: its own stable messages were cut (S3).
    "own_tail_cut": Schedule(
        1558,
        ((124, 1),),
        (
            Fault(243, Act.TAKEOVER, "source", "", 2675, True),
            Fault(506, Act.CRASH, "store1", "receiver1", 783, True),
            Fault(1765, Act.FULL, "store2", "receiver1", 814, True),
            Fault(3110, Act.CRASH, "source", "", 111, False),
        ),
    ),
    # Receivers went on looking for a store that has a name where it had been before it moved (L1).
    "store_moved": Schedule(
        426,
        (),
        (Fault(3417, Act.CRASH, "store0", "", 1, True),),
        WorldSetup(named=True, leaving=Leaving.RECEIVER),
    ),
    # The last life of a source did not name a store that was slow; two proxies that never met stood in for it (E8).
    "proxies_that_never_met": Schedule(
        536,
        (),
        (
            Fault(1137, Act.CRASH, "source", "", 61, True),
            Fault(1179, Act.FREEZE, "store1", "", 541, False),
            Fault(1555, Act.CRASH, "source", "", 2445, False),
        ),
        WorldSetup(proxies=True, orphaned=True),
    ),
    # A replaced life came back; stores differed in which life was over and refused each other's proxies for ever (E8).
    "proxies_of_two_lives": Schedule(
        730,
        (),
        (
            Fault(166, Act.TAKEOVER, "source", "", 2463, False),
            Fault(2756, Act.PART, "source", "", 851, True),
        ),
        WorldSetup(proxies=True, orphaned=True),
    ),
    # A confirmation went with its connection, and the flight that waited for it stayed full (L1).
    "confirmation_lost": Schedule(
        641,
        ((1479, 1), (2469, 38)),
        (Fault(2490, Act.PART, "source", "", 43, True),),
        WorldSetup(paced=True, unique=1),
    ),
    # A store that was away offered its trail as if it had let go of what it never had: a new receiver missed that (D1).
    "never_had_is_not_let_go": Schedule(
        6547,
        ((3661, 1),),
        (
            Fault(1962, Act.TAKEOVER, "source", "receiver0", 2038, True),
            Fault(2007, Act.FREEZE, "store0", "", 1993, True),
            Fault(3583, Act.TAKEOVER, "receiver0", "store0", 388, True),
        ),
        WorldSetup(proxies=True, orphaned=True, paced=True, late_ms=3999),
    ),
    # A store that was killed while a life came back behind another took the numbers of that one for its own (P1).
    "return_before_a_crash": Schedule(
        1181,
        ((12, 1), (2637, 1), (3307, 2)),
        (
            Fault(608, Act.CRASH, "store2", "", 1, False),
            Fault(758, Act.TAKEOVER, "source", "", 2569, False),
            Fault(2503, Act.FULL, "store2", "receiver1", 1423, False),
            Fault(2577, Act.CUT, "source", "receiver1", 14, False),
            Fault(3296, Act.STALL, "source", "store2", 87, True),
            Fault(3421, Act.CRASH, "source", "", 579, True),
            Fault(3482, Act.CRASH, "store0", "", 1, False),
        ),
        WorldSetup(late_ms=1086),
    ),
    # In arrival order an explicit acknowledgement counted pieces of messages that were not whole yet (A1).
    "pieces_acknowledged": Schedule(
        700079,
        ((1381, 35), (1420, 34)),
        (Fault(1503, Act.LEAVE, "receiver0", "", 578, False),),
        WorldSetup(request_rate=200, arrival=True, ack_mode=AckMode.EXPLICIT, large=3),
    ),
    # An earlier life of a source that deregistered registered once more: the store seemed not to have forgotten (L1).
    "another_life_registers_behind_a_farewell": Schedule(
        700231,
        ((976, 7), (1016, 8), (1835, 8), (2904, 23)),
        (Fault(475, Act.TAKEOVER, "source", "", 2449, True),),
        WorldSetup(paced=True, late_ms=3372, leaving=Leaving.HASTY_SOURCE, resolution=1),
    ),
    # Only a store that the source had not named yet heard whom it named: a proxy was asked for, none could be (E8).
    "nobody_who_was_named_knows": Schedule(
        815294,
        (),
        (
            Fault(67, Act.CRASH, "source", "", 3933, False),
            Fault(352, Act.CRASH, "receiver1", "store1", 1, False),
            Fault(597, Act.TAKEOVER, "receiver1", "receiver0", 1, True),
            Fault(2501, Act.SLOW, "store1", "receiver1", 235, False),
            Fault(2545, Act.CRASH, "source", "receiver0", 187, False),
            Fault(2554, Act.TAKEOVER, "receiver0", "store2", 203, True),
            Fault(2881, Act.PART, "source", "", 1119, False),
            Fault(3955, Act.CRASH, "source", "", 11, True),
        ),
        WorldSetup(proxies=True, orphaned=True),
    ),
    # A receiver that deregistered asked a store that had moved for ever to forget it where it had been (L1).
    "store_moved_behind_a_farewell": Schedule(
        811728,
        (),
        (Fault(2752, Act.WIPE, "store0", "store1", 1, True),),
        WorldSetup(named=True, leaving=Leaving.RECEIVER),
    ),
    # A store that was wiped granted another RegID when it was another's turn; the source left under its old one (L1).
    "another_reg_id_behind_a_turn": Schedule(
        816179,
        (),
        (
            Fault(380, Act.WIPE, "store2", "store1", 1, True),
            Fault(1987, Act.WIPE, "store1", "receiver1", 1, True),
            Fault(3761, Act.WIPE, "store0", "source", 1, True),
        ),
        WorldSetup(turns=True, leaving=Leaving.SOURCE),
    ),
    # A receiver that sets the pace began behind what one store had let go, and the others waited for it for ever (L1).
    "stores_wait_for_what_a_receiver_passed_by": Schedule(
        831253,
        ((652, 1), (1444, 1), (3778, 30), (3848, 24)),
        (
            Fault(81, Act.TAKEOVER, "receiver0", "store1", 1, True),
            Fault(150, Act.TAKEOVER, "source", "store1", 2234, True),
            Fault(294, Act.FREEZE, "source", "store1", 109, True),
            Fault(1056, Act.CRASH, "store1", "", 1, False),
            Fault(1240, Act.PART, "receiver1", "", 148, True),
            Fault(1293, Act.CRASH, "source", "", 40, False),
            Fault(1347, Act.CRASH, "store0", "", 1, False),
            Fault(2249, Act.PART, "receiver1", "", 220, True),
            Fault(3822, Act.TAKEOVER, "receiver1", "source", 51, False),
        ),
        WorldSetup(memory=True, size_limit=720, paced=True, large=3),
    ),
    # A receiver acknowledged what an overtaken life had sent: numbers of the other life's stable messages (D1).
    "acknowledged_of_a_life_that_is_over": Schedule(
        9001035,
        ((1178, 1), (1195, 1)),
        (
            Fault(846, Act.PART, "source", "", 1441, False),
            Fault(852, Act.RIVAL, "source", "", 1, False),
            Fault(1145, Act.CRASH, "source", "", 42, True),
            Fault(1146, Act.FREEZE, "store0", "", 958, False),
            Fault(1459, Act.PART, "receiver1", "store2", 1142, False),
            Fault(2224, Act.CRASH, "source", "", 88, True),
        ),
        WorldSetup(brief=True),
    ),
    # No store counted a receiver when it acknowledged: the source was never confirmed what it waited for (L1).
    "confirmed_while_nobody_counts": Schedule(
        9001395,
        ((133, 10), (157, 33)),
        (Fault(208, Act.LEAP, "receiver1", "", 2148, True),),
        WorldSetup(unique=2),
    ),
    # Waiting messages were handed over again at a source's turn at another store: the lives shared no store (D1).
    "backlog_behind_a_turn": Schedule(
        9000365,
        ((1757, 2),),
        (Fault(1951, Act.CRASH, "source", "", 1, True),),
        WorldSetup(turns=True, habit=Habit.BLOCKING),
    ),
    # The session with a proxy inherited a backlog, ended, and was forgotten with it when the source returned (D1).
    "backlog_behind_a_proxy": Schedule(
        9000200,
        ((195, 25), (220, 39), (225, 35)),
        (Fault(495, Act.CRASH, "source", "", 1001, False),),
        WorldSetup(proxies=True, habit=Habit.THREADED),
    ),
    # An application acknowledged a message in hand whose life was over and its number cut: that raised (X1).
    "acknowledged_in_hand": Schedule(
        9100039,
        ((204, 20),),
        (
            Fault(184, Act.STALL, "source", "store0", 60, False),
            Fault(184, Act.STALL, "source", "store1", 60, False),
            Fault(244, Act.CRASH, "source", "", 1, True),
            Fault(247, Act.CRASH, "store2", "", 165, False),
        ),
        WorldSetup(ack_mode=AckMode.EXPLICIT, habit=Habit.SLOW),
    ),
    # A connection on its way to a proxy that had ended, in a store that stood still, stayed and led to nobody (L1).
    "connected_behind_the_end_of_a_proxy": Schedule(
        830083,
        ((82, 1),),
        (
            Fault(88, Act.CRASH, "source", "", 16, True),
            Fault(105, Act.PART, "store0", "", 1164, False),
            Fault(717, Act.CRASH, "source", "", 1641, False),
            Fault(2129, Act.FREEZE, "store0", "", 1871, True),
            Fault(3135, Act.PART, "store2", "store0", 4, True),
        ),
        WorldSetup(
            rules=GroupRules((2, 1), Intragroup.QUORUM, Intergroup.ALL_ACTIVE),
            proxies=True,
            orphaned=True,
            late_ms=3999,
            resolution=40,
        ),
    ),
    # Acknowledgements that a store collected were sent after the disk had not given the messages back (P1).
    "acknowledged_behind_damage": Schedule(
        9003882,
        ((217, 14), (410, 2), (746, 17), (1170, 18)),
        (
            Fault(1, Act.PART, "source", "store1", 435, False),
            Fault(430, Act.PART, "source", "", 2130, False),
            Fault(431, Act.RIVAL, "source", "", 1525, True),
            Fault(432, Act.PART, "source", "store2", 1525, False),
            Fault(432, Act.PART, "source", "store0", 1280, False),
            Fault(448, Act.PART, "receiver1", "", 274, True),
            Fault(722, Act.CRASH, "source", "", 40, False),
            Fault(1682, Act.SLOW, "store1", "", 600, False),
            Fault(1707, Act.PART, "receiver1", "", 524, True),
            Fault(1938, Act.CRASH, "store1", "", 1, False),
            Fault(1975, Act.DAMAGE, "store1", "", 0, False),
        ),
        WorldSetup(write_delay_ms=20, ack_minimum=30, brief=True, habit=Habit.FICKLE),
    ),
    # A proxy that was about to end announced itself behind the source's new life, and muted it for good (L1).
    "proxy_that_is_late": Schedule(
        9100290,
        ((346, 8), (407, 32), (438, 8), (1386, 26)),
        (
            Fault(329, Act.WIPE, "store0", "source", 175, False),
            Fault(350, Act.FREEZE, "source", "store0", 148, False),
            Fault(429, Act.STALL, "source", "receiver0", 857, False),
            Fault(781, Act.PART, "receiver0", "store0", 1811, False),
            Fault(786, Act.RIVAL, "receiver0", "", 0, False),
            Fault(841, Act.LEAP, "source", "store1", 412, False),
            Fault(1111, Act.WIPE, "store0", "store2", 229, True),
            Fault(1965, Act.CRASH, "source", "", 2035, True),
            Fault(1965, Act.FALTER, "store1", "", 99, True),
            Fault(1965, Act.FALTER, "store2", "", 1494, False),
            Fault(2432, Act.PART, "store2", "", 1, True),
            Fault(2738, Act.STALL, "store2", "store1", 70, True),
            Fault(3394, Act.STALL, "receiver0", "store0", 606, False),
            Fault(3822, Act.FREEZE, "store0", "", 178, True),
        ),
        WorldSetup(proxies=True, late_ms=3505, large=7, resolution=40, brief=True, habit=Habit.BLOCKING),
    ),
    # A source deregistered as soon as it could be heard again: its proxy stayed for ever, and all that stores had (L1).
    "deregistered_behind_a_proxy": Schedule(
        9300183,
        (),
        (Fault(2520, Act.PART, "source", "", 1480, True),),
        WorldSetup(proxies=True, leaving=Leaving.HASTY_SOURCE),
    ),
    # A store whose turn came did not know a receiver that had returned: it was handed old messages after new ones (D1).
    "turn_behind_a_return": Schedule(
        9005253,
        ((1212, 1), (1241, 5)),
        (
            Fault(1296, Act.CRASH, "receiver1", "store1", 1, True),
            Fault(1797, Act.CRASH, "source", "", 1, True),
        ),
        WorldSetup(turns=True, habit=Habit.THREADED),
    ),
    # As above, but the source went back to a store that had crashed. It had cut the numbers with which this run of the
    # receiver began, so nothing told the new session where that was, and it began with an older message (D1).
    "turn_behind_a_cut": Schedule(
        572316,
        ((1448, 14),),
        (
            Fault(1239, Act.FULL, "store0", "source", 1142, False),
            Fault(1545, Act.CRASH, "receiver0", "receiver1", 1, True),
            Fault(1660, Act.CRASH, "source", "store0", 1, False),
            Fault(2465, Act.CRASH, "source", "store1", 1, True),
        ),
        WorldSetup(turns=True, large=4, habit=Habit.FICKLE),
    ),
    # Slow stores queued each repeated request again, and sent some messages ten times, but others too late (S3).
    "request_that_is_repeated": Schedule(
        9006959,
        (
            (1269, 1),
            (1337, 1),
            (1498, 27),
            (1525, 28),
            (1538, 39),
            (1553, 4),
            (1588, 31),
            (1593, 8),
            (1609, 31),
            (1636, 16),
            (1706, 23),
        ),
        (
            Fault(1524, Act.CRASH, "source", "", 69, True),
            Fault(1528, Act.FREEZE, "store1", "", 1027, True),
            Fault(1539, Act.TAKEOVER, "receiver0", "receiver1", 49, True),
            Fault(2509, Act.CRASH, "source", "", 88, True),
        ),
        WorldSetup(request_rate=200, forwarding=True, habit=Habit.SLOW),
    ),
    # A checker took a confirmation of the range before a lost message for a lower acknowledgement (A1).
    "confirmation_before_a_loss": Schedule(
        8390,
        (
            *((503, 1), (712, 35), (831, 4), (1794, 1), (1814, 5), (1821, 1), (1876, 25), (1889, 1), (1911, 2)),
            *((1915, 1), (1919, 6), (1920, 1), (1923, 13), (1927, 2), (1928, 3), (1935, 27), (1938, 6), (2382, 1)),
            *((2472, 8), (2483, 2), (3149, 4), (3413, 1)),
        ),
        (
            Fault(1895, Act.PART, "source", "", 598, True),
            Fault(1918, Act.FULL, "store0", "receiver1", 10, False),
            Fault(2107, Act.WIPE, "store2", "", 944, False),
            Fault(2641, Act.STALL, "store2", "receiver0", 9, False),
            Fault(2774, Act.RESTORE, "store2", "", 29, False),
        ),
        WorldSetup(memory=True, unique=1, retained=(480, 1440), resolution=1, leaving=Leaving.NOBODY),
    ),
    # A life that was over announced itself late, shared no life with its successor, and muted it for good (L1).
    "late_life_without_a_past": Schedule(
        9201290,
        (),
        (
            Fault(1, Act.PART, "source", "store0", 427, False),
            Fault(250, Act.CRASH, "source", "store2", 36, True),
            Fault(422, Act.PART, "source", "", 1696, False),
            Fault(423, Act.RIVAL, "source", "", 386, True),
            Fault(723, Act.TAKEOVER, "source", "", 1, False),
        ),
        WorldSetup(brief=True),
    ),
    # A life registered again behind another, and its first grant left before its last record was synced (R2).
    "returned_before_its_grant": Schedule(
        3014,
        (
            (376, 1),
            (386, 2),
            (389, 1),
            (392, 5),
            (400, 4),
        ),
        (
            Fault(1, Act.PART, "source", "store2", 509, False),
            Fault(144, Act.RESTORE, "store0", "", 1027, False),
            Fault(436, Act.PART, "store1", "source", 462, False),
            Fault(504, Act.PART, "source", "", 1774, False),
            Fault(504, Act.PART, "source", "store1", 2657, True),
            Fault(505, Act.RIVAL, "source", "", 1421, True),
            Fault(506, Act.PART, "source", "store1", 1212, False),
            Fault(678, Act.CRASH, "store1", "", 1, False),
            Fault(927, Act.CRASH, "source", "", 1655, True),
            Fault(1827, Act.SLOW, "store0", "", 1000, False),
            Fault(2416, Act.FREEZE, "store0", "", 1584, True),
        ),
        WorldSetup(proxies=True, late_ms=3999, large=7, resolution=40, brief=True),
    ),
    # In arrival order nothing acknowledged messages consumed before one below them was lost (L1).
    "loss_below_what_was_consumed": Schedule(
        1340,
        ((1445, 1),),
        (
            Fault(105, Act.WIPE, "store0", "", 1, True),
            Fault(1706, Act.CRASH, "store2", "", 1, False),
            Fault(1730, Act.WIPE, "store1", "", 1, True),
            Fault(1898, Act.DAMAGE, "store2", "", 0, True),
            Fault(2153, Act.CRASH, "source", "", 1, False),
            Fault(2333, Act.WIPE, "store1", "store2", 97, False),
        ),
        WorldSetup(unique=1, arrival=True),
    ),
    # A receiver that returned met an empty store and one that had been away. It began above stable messages, and
    # acknowledged them to the store that knew it and answered late (D1).
    "return_between_stores_that_lack_messages": Schedule(
        7,
        ((100, 3), (200, 3), (500, 4), (600, 4), (2000, 3), (3000, 3)),
        (
            Fault(5, Act.CRASH, "store2", "", 1300, False),
            Fault(400, Act.CRASH, "receiver0", "", 2900, False),
            Fault(700, Act.CRASH, "source", "", 700, False),
            Fault(700, Act.WIPE, "store1", "", 1, False),
            Fault(1250, Act.PART, "store0", "store1", 2700, False),
            Fault(1250, Act.PART, "store0", "store2", 2700, False),
            Fault(3250, Act.PART, "store0", "receiver0", 700, True),
        ),
        WorldSetup(brief=True),
    ),
    # A store let the oldest messages of a dead tail go by its limit. A later life used their numbers again, and the
    # store did not ask the others for its messages (S3).
    "numbers_of_a_released_tail": Schedule(
        207960,
        ((377, 40), (405, 1)),
        (
            Fault(299, Act.STALL, "source", "store0", 120, False),
            Fault(348, Act.CRASH, "store1", "receiver0", 46, False),
            Fault(393, Act.CRASH, "source", "", 38, True),
            Fault(435, Act.PART, "source", "store2", 180, True),
        ),
        WorldSetup(disk_limit=480),
    ),
    # A source took its RegID from a proxy, sent, and ended. The proxy still counted on its lease, asked the store that
    # it had not reached before, and its old SRI cut what the source had made stable (S3).
    "announced_behind_the_source": Schedule(
        408664,
        ((3982, 1),),
        (
            Fault(706, Act.PART, "source", "", 2051, False),
            Fault(709, Act.RIVAL, "source", "", 291, False),
            Fault(860, Act.TAKEOVER, "receiver0", "receiver1", 1, False),
            Fault(2450, Act.PART, "source", "store1", 1550, False),
            Fault(2455, Act.PART, "source", "store2", 1328, False),
        ),
        WorldSetup(proxies=True, orphaned=True, late_ms=3999),
    ),
    # An undeclared copy of its disk let a store forget the life that it had promised itself to. The life before came
    # back through it, and a checker took what it made stable for promised (S3).
    "life_before_a_copy": Schedule(
        408788,
        ((2193, 1),),
        (
            Fault(419, Act.PART, "source", "", 1986, True),
            Fault(419, Act.PART, "source", "store1", 2575, False),
            Fault(420, Act.RIVAL, "source", "", 1, True),
            Fault(1626, Act.RESTORE, "store1", "", 984, True),
            Fault(2142, Act.CRASH, "source", "", 111, True),
        ),
    ),
    # In turns a receiver waited for the vote of a store that had moved, and then for a message that only that store
    # had. A checker took that for a receiver that never gets anything (L1).
    "turn_behind_a_moved_store": Schedule(
        409295,
        ((55, 11), (1210, 1), (1956, 1), (2567, 1)),
        (
            Fault(118, Act.FULL, "store0", "receiver0", 401, True),
            Fault(2451, Act.CRASH, "source", "store0", 332, False),
            Fault(3107, Act.TAKEOVER, "receiver0", "store0", 1, False),
            Fault(3271, Act.CRASH, "store1", "", 1, True),
            Fault(3711, Act.CRASH, "store1", "source", 289, False),
        ),
        WorldSetup(named=True, turns=True, late_ms=722),
    ),
    # In a small memory, an old message that came back kept newer ones from leaving it before it was on disk. The next
    # ones of a refill found no room, and the store asked for them a minute later, or never (S3).
    "refill_behind_newer_messages": Schedule(
        410817,
        (
            *((1482, 1), (1878, 9), (1944, 6), (1954, 1), (1979, 20), (1994, 5), (1994, 1), (1999, 5)),
            *((2001, 1), (2002, 1), (2034, 1), (2039, 8), (2056, 1), (2069, 2), (2076, 8), (2090, 6)),
            *((2234, 25), (2407, 6), (2598, 1), (3034, 7), (3455, 1), (3977, 1)),
        ),
        (
            Fault(218, Act.CRASH, "store2", "store1", 391, True),
            Fault(568, Act.PART, "receiver1", "", 374, True),
            Fault(1480, Act.LEAP, "source", "receiver1", 10, False),
            Fault(1540, Act.CRASH, "store1", "", 1, False),
            Fault(1591, Act.PART, "receiver0", "", 194, True),
            Fault(1744, Act.DAMAGE, "store1", "", 0, True),
            Fault(2007, Act.CRASH, "store1", "store0", 22, False),
            Fault(2013, Act.CRASH, "source", "store1", 341, True),
            Fault(2031, Act.STALL, "store2", "receiver1", 475, True),
            Fault(2039, Act.STALL, "store0", "receiver1", 1961, True),
            Fault(2395, Act.LEAP, "source", "store2", 29, False),
            Fault(2811, Act.PART, "receiver1", "", 524, True),
            Fault(2949, Act.CRASH, "store2", "", 1, False),
            Fault(3070, Act.DAMAGE, "store2", "", 0, True),
        ),
        WorldSetup(size_limit=1440, large=3),
    ),
    # In arrival order, the acknowledgement of a message that came earlier counted for a lower one in hand (A1).
    "acknowledged_above_what_is_in_hand": Schedule(
        420983,
        ((471, 1), (477, 1), (1637, 3)),
        (
            Fault(233, Act.PART, "source", "store2", 1532, True),
            Fault(450, Act.CRASH, "store1", "", 1166, True),
        ),
        WorldSetup(late_ms=1195, arrival=True, ack_mode=AckMode.EXPLICIT, brief=True, habit=Habit.THREADED),
    ),
    # A lease ended while stores got damaged messages back, so the source was registered with none for a moment. A
    # checker took them for healed, and then what they still lacked for lost (S3).
    "healed_without_a_registration": Schedule(
        438330,
        ((712, 1), (1926, 1)),
        (
            Fault(1045, Act.DAMAGE, "store1", "", 0, True),
            Fault(2963, Act.RIVAL, "source", "", 353, True),
            Fault(3217, Act.DAMAGE, "store0", "", 0, True),
            Fault(3327, Act.CRASH, "source", "", 40, False),
        ),
        WorldSetup(brief=True),
    ),
    # Two stores without disks were empty, and asked each other for what a limit had released, two numbers at a time and
    # lowest first. What was still kept would have come a minute later (S3).
    "newest_messages_of_a_small_memory": Schedule(
        440910,
        (
            *((522, 36), (841, 1), (1082, 32), (1830, 3), (1878, 31), (1966, 1), (1967, 1)),
            *((2002, 1), (2024, 24), (2032, 3), (2858, 1), (2967, 1), (3345, 6), (3384, 7)),
        ),
        (
            Fault(1920, Act.WIPE, "store2", "", 47, True),
            Fault(3276, Act.WIPE, "store0", "", 4, False),
        ),
        WorldSetup(memory=True, size_threshold=480, size_limit=1440, large=5, resolution=40),
    ),
    # Acknowledgements of a message that all memories had lost came after the next life had used its number. A checker
    # took the release of the other message for one of this one (S2).
    "acknowledgement_of_a_lost_memory": Schedule(
        448704,
        ((563, 1), (1428, 1)),
        (
            Fault(583, Act.PART, "source", "", 2058, False),
            Fault(584, Act.RIVAL, "source", "", 1581, True),
            Fault(918, Act.WIPE, "store1", "", 1, False),
            Fault(1066, Act.RESTORE, "store0", "", 1, True),
            Fault(1121, Act.CRASH, "store2", "", 1, False),
            Fault(1435, Act.CRASH, "source", "", 1, False),
        ),
        WorldSetup(ack_minimum=5, paced=True, on_reception=True, brief=True, habit=Habit.FICKLE),
    ),
    # A life that a rival had replaced came back while its stream was joined. Its receivers had stopped its session, and
    # went on with what the rival had sent in vain (D1). They got nothing more before the next life (L1).
    "replaced_life_is_followed_again": THWARTED,
    # A receiver that is cut off cannot know that the life is back. A checker blamed it (D1).
    "life_that_returns_unheard_of": attrs.evolve(
        THWARTED, faults=(*THWARTED.faults, Fault(2160, Act.PART, "receiver0", "", 840, False))
    ),
    # The session that the returned life had before acknowledged after the new one had begun to ask for its start (A1).
    "replaced_session_acknowledges_first": Schedule(
        481875,
        ((455, 40),),
        (
            Fault(1, Act.PART, "source", "store2", 600, False),
            Fault(487, Act.FREEZE, "receiver0", "", 547, False),
            Fault(595, Act.PART, "source", "store0", 2869, True),
            Fault(596, Act.RIVAL, "source", "", 1672, True),
            Fault(597, Act.PART, "source", "store0", 1395, False),
            Fault(2041, Act.STALL, "source", "store2", 375, False),
        ),
        WorldSetup(brief=True, habit=Habit.BLOCKING),
    ),
    # Two proxies stood in for a source that was back for a moment only. The lower token won, and learned that the life
    # of the other one was counted after its own, so it was over. A checker took it for the one that stands in (E8).
    "proxy_that_won_and_is_over": Schedule(
        573128,
        ((147, 1),),
        (
            Fault(299, Act.TAKEOVER, "source", "", 2525, True),
            Fault(1111, Act.CRASH, "source", "", 1444, True),
            Fault(1111, Act.FALTER, "store0", "", 1420, True),
            Fault(1111, Act.FALTER, "store1", "", 192, False),
            Fault(1111, Act.FALTER, "store2", "", 181, True),
            Fault(1964, Act.CRASH, "store1", "", 26, False),
            Fault(2312, Act.PART, "source", "", 1688, False),
        ),
        WorldSetup(proxies=True, orphaned=True, late_ms=3999),
    ),
    # A store read the only announcement that named another one, and its full disk did not keep it. Their proxies could
    # not meet. A checker took them for acquainted (E8).
    "proxies_behind_a_full_disk": Schedule(
        478097,
        ((2408, 1), (3216, 1), (3335, 1), (3394, 2), (3443, 1)),
        (
            Fault(1, Act.PART, "source", "store1", 566, False),
            Fault(162, Act.FULL, "store2", "source", 1925, False),
            Fault(389, Act.FULL, "store1", "source", 998, True),
            Fault(561, Act.PART, "source", "store0", 2820, True),
            Fault(562, Act.RIVAL, "source", "", 392, True),
            Fault(563, Act.PART, "source", "store2", 1570, False),
            Fault(828, Act.CRASH, "source", "", 3172, True),
            Fault(1880, Act.SLOW, "store1", "", 600, False),
            Fault(3444, Act.CRASH, "store1", "", 556, False),
            Fault(3444, Act.CRASH, "store2", "", 556, False),
            Fault(3458, Act.FULL, "store0", "store1", 48, True),
        ),
        WorldSetup(proxies=True, orphaned=True, late_ms=3999, leaving=Leaving.HASTY_SOURCE, resolution=1),
    ),
    # The live messages took the room of a store without a disk before its refill was done. A checker asked for what was
    # left, as if the store could let the others go (S3).
    "refill_into_a_full_memory": Schedule(
        484864,
        ((849, 18), (2754, 36), (2865, 8)),
        (
            Fault(2749, Act.STALL, "source", "store1", 60, False),
            Fault(2809, Act.CRASH, "source", "", 1, True),
        ),
        WorldSetup(memory=True, size_limit=1440),
    ),
    # A new receiver acknowledged what one of its stores had below its start. Then a store that had met it before took
    # the start back. A checker compared the acknowledgements of both starts (A1).
    "acknowledgement_before_a_late_grant": Schedule(
        486789,
        ((934, 1),),
        (
            Fault(478, Act.PART, "receiver0", "store1", 1830, True),
            Fault(480, Act.RIVAL, "receiver0", "", 0, False),
            Fault(869, Act.STALL, "source", "store0", 120, False),
            Fault(939, Act.CRASH, "source", "", 90, True),
            Fault(950, Act.FREEZE, "store2", "", 1421, True),
            Fault(1658, Act.PART, "source", "store2", 2077, True),
            Fault(1664, Act.RIVAL, "source", "", 621, True),
            Fault(2109, Act.CRASH, "source", "receiver0", 137, False),
            Fault(3016, Act.RIVAL, "receiver0", "", 930, False),
        ),
        WorldSetup(paced=True, resolution=10, brief=True, habit=Habit.THREADED),
    ),
    # Of two stores that acknowledged a message, one memory forgot it, and the third store never had it. A rival began
    # through these two before the acknowledgements came (S2).
    "acknowledgement_of_one_lost_memory": Schedule(
        484325,
        ((483, 25), (515, 22), (1905, 1)),
        (
            Fault(1, Act.PART, "source", "store2", 573, False),
            Fault(568, Act.PART, "source", "", 1874, False),
            Fault(569, Act.RIVAL, "source", "", 1699, True),
            Fault(570, Act.PART, "source", "store1", 1699, False),
            Fault(1591, Act.PART, "receiver0", "", 138, True),
            Fault(1694, Act.CRASH, "store0", "", 1, False),
        ),
        WorldSetup(memory=True, named=True, size_limit=720, paced=True, brief=True, habit=Habit.FICKLE),
    ),
    # The first process of a source went on when its rival was dead, and was told to deregister when it was over. Nobody
    # told the process that began after it (L1).
    "farewell_of_a_process_that_is_over": Schedule(
        503325,
        ((414, 21), (595, 13), (1099, 31), (1704, 40), (3449, 12)),
        (
            Fault(1, Act.PART, "source", "store0", 474, False),
            Fault(469, Act.PART, "source", "", 2141, True),
            Fault(470, Act.RIVAL, "source", "", 1668, True),
            Fault(471, Act.PART, "source", "store1", 1386, False),
            Fault(506, Act.FULL, "store2", "receiver0", 1409, True),
            Fault(1716, Act.FULL, "store1", "receiver1", 2076, True),
            Fault(3128, Act.CRASH, "store2", "", 872, False),
        ),
        WorldSetup(leaving=Leaving.HASTY_SOURCE, large=2, brief=True, habit=Habit.THREADED),
    ),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_mended(name: str) -> None:
    assert run(FOUND[name]).violations == ()


NEVER_AGAIN = {"client.session.BEFORE_DELIVERY": ()}
"""The fault that a life which was given up for an earlier one is not followed again."""
STAYS_REPLACED = {"core.subscription.subscription.Followed.comes_back": lambda *_: False}
"""The fault that a replaced life which comes back is not followed."""
NO_JUDGE_OF_LIVES = {"lab.sim.receiver_checkers.ReceiverCheckers.on_handed": lambda *_: None}
NO_MARKS = {"core.store.grants.first_lacking": lambda _: None, "core.store.grants.remembers": lambda _: True}
"""The fault that no receiver hears what a store lacks, or may have forgotten."""


EARLY_REPORTS: dict[str, Any] = {
    "core.registration.store_registration.Registration._asked_late": lambda *_: False,
    "core.registration.store_registration.Registration._tries": property(lambda _: 1),
}
"""A client that had not run called its stores silent, and asked them anew."""


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "planted", "rule"),
    [
        (
            "proxy_that_is_late",
            # Empty disks are part of the run, and today they hold the lives up in which the fault showed.
            {
                "core.subscription.subscription.outranks": lambda *_: False,
                "core.store.registry.Registry.forget": lambda *_: None,
                # The stores of that time counted no generations, and told nobody of an empty disk.
                "lab.sim.store.StoreProcess._earlier": False,
                "lab.sim.store.following": lambda *_: NONE,
                # Nor did they deny requests, or count acknowledgements of the life before, which moves what follows.
                "core.store.retransmission.void_from": lambda *_: None,
                "core.store.source_history.SourceHistory.last_of": lambda *_: None,
                # An announced end of the source leads away from the proxy, too.
                "transports.resolution.udp.settings.AdvertiseOptions.at_end": property(
                    lambda _: False, lambda *_: None
                ),
            }
            | NEVER_AGAIN
            | NO_MARKS
            | EARLY_REPORTS,
            "L1",
        ),
        ("turn_behind_a_return", {"core.subscription.succession.Succession.low": lambda _, __, wish: wish}, "D1"),
        ("turn_behind_a_cut", {"core.subscription.succession.Succession.low": lambda _, __, wish: wish}, "D1"),
        ("late_life_without_a_past", NEVER_AGAIN, "L1"),
        ("replaced_life_is_followed_again", STAYS_REPLACED, "D1"),
        ("replaced_life_is_followed_again", STAYS_REPLACED | NO_JUDGE_OF_LIVES, "L1"),
        ("life_that_returns_unheard_of", STAYS_REPLACED, "D1"),
        (
            "confirmation_before_a_loss",
            {"core.receiver.delivery_window.DeliveryWindow.confirmed": lambda _, start, stop: [(start, stop)]},
            "A1",
        ),
    ],
)
def test_what_was_mended_is_found_without_it(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: dict[str, Any], rule: str
) -> None:
    for what, fault in planted.items():
        monkeypatch.setattr(f"stablecast.{what}", fault)
    # Today a refill brings back what some of these worlds lost.
    found = attrs.evolve(FOUND[name], setup=attrs.evolve(FOUND[name].setup, refill=False))
    assert {violation.rule for violation in run(found).violations} == {rule}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "planted", "rule"),
    [
        ("announced_behind_the_source", "core.store.source_history.SourceHistory.is_behind", "S3"),
        ("announced_behind_the_source", "core.source.SourceEndpoint._is_behind", "L1"),
        ("refill_into_a_full_memory", "core.store.repository.Repository.lack", "S3"),
        ("life_before_a_copy", "lab.sim.facts.Facts.on_claimed", "S3"),
    ],
)
def test_what_was_mended_beside_a_refill_is_found_without_it(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: str, rule: str
) -> None:
    for place, behaviour in ({planted: lambda *_: False} | EARLY_REPORTS).items():
        monkeypatch.setattr(f"stablecast.{place}", behaviour)
    assert rule in {violation.rule for violation in run(FOUND[name]).violations}
