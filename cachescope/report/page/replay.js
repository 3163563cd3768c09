// Replays the recorded misses without some fields, over integer codes alone: analysis/what_if, in a browser.
// It knows no page. Outcomes, positions and guards are numbered as they are there.
const replayOf = (() => {
  const HIT = 0, MISS = 1, UNKNOWN = 2;
  const NO_GUARDS = 0, NOT_KNOWN = -1, ANY = -2;

  // A number, or [a number, how often it stands there].
  const unpacked = (packed) => {
    const found = [];
    for (const one of packed) {
      if (typeof one === "number") found.push(one);
      else for (let times = one[1]; times; times -= 1) found.push(one[0]);
    }
    return found;
  };
  const summed = (steps) => { let sum = 0; return unpacked(steps).map((step) => (sum += step)); };
  const listed = (places, count) => {
    const lists = Array.from({ length: count }, () => []);
    places.forEach((place, at) => { if (place >= 0) lists[place].push(at); });
    return lists;
  };

  // What lies there under keys that count as one, as of the lookup that asked last: analysis/history/directory.py.
  class Directory {
    constructor(events, after) {
      this.coming = events.sort((a, b) => b.at - a.at);
      this.after = after;
      this.counts = new Map();
    }
    // What a miss finds among the entries of the others: those of its own key did not fit, which was recorded.
    wouldFind(cell, at, guards) {
      while (this.coming.length && this.coming.at(-1).at <= at) this.take(this.coming.pop());
      if (this.hasOther(cell, NO_GUARDS) || (guards !== NOT_KNOWN && this.hasOther(cell, guards))) return HIT;
      return this.hasOther(cell, ANY) ? UNKNOWN : MISS;
    }
    take({ cell, source, more, guards }) {
      const came = source < 0 ? MISS : this.after[source];
      if (came === HIT) return;
      // What a lookup that may have hit would have stored may not exist.
      for (const kind of guards === NOT_KNOWN || came === UNKNOWN ? [ANY] : [ANY, guards]) {
        if (!this.counts.has(kind)) this.counts.set(kind, { all: 0, of: new Map() });
        const count = this.counts.get(kind);
        count.all += more;
        count.of.set(cell, (count.of.get(cell) || 0) + more);
      }
    }
    hasOther(cell, guards) {
      const count = this.counts.get(guards);
      return Boolean(count) && count.all > (count.of.get(cell) || 0);
    }
  }

  class Replay {
    constructor(codes) {
      const { misses, cells, events } = codes;
      this.at = summed(misses.at);
      this.cell = summed(misses.cell);
      this.aot = unpacked(misses.aot).map((back, miss) => (back ? miss - back : -1));
      this.isOpen = unpacked(misses.is_open);
      this.taken = unpacked(misses.taken);
      this.home = Int32Array.from(unpacked(cells.home));
      this.isAot = unpacked(cells.is_aot);
      this.missesOf = listed(this.cell, this.home.length);
      this.eventsOf = Array.from(this.home, () => []);
      this.guards = this.at.map(() => NOT_KNOWN);
      const [ats, cellsOf, sources, mores, guards] = ["at", "cell", "source", "more", "guards"].map((name) => summed(events[name]));
      ats.forEach((at, number) => {
        const source = sources[number];
        this.eventsOf[cellsOf[number]].push({ at, cell: cellsOf[number], source, more: mores[number], guards: guards[number] });
        if (source >= 0) this.guards[source] = Math.max(this.guards[source], guards[number]);
      });
      this.values = codes.values.map((packed) => this.odd(packed));
      this.forms = codes.forms;
      this.before = codes.before;
      this.parted = codes.parted && { field: codes.parted.field, values: {} };
      for (const bits in codes.parted?.values) this.parted.values[bits] = this.odd(codes.parted.values[bits]);
    }

    // Most cells have the usual value, 0: only the others are looked at.
    odd(packed) {
      const values = unpacked(packed);
      const cells = values.flatMap((value, cell) => (value ? [cell] : []));
      return { cells, values: cells.map((cell) => values[cell]), size: values.reduce((a, b) => Math.max(a, b), 0) + 1 };
    }

    // What does not count: fields and forms by their places. Returns what the numbers of a page are made of.
    without(fields, forms) {
      const after = new Uint8Array(this.at.length).fill(MISS);
      const groups = this.groups(this.counting(fields, forms));
      // If an AOTAutograd entry is found, its graphs are found through it.
      groups.filter(([cell]) => this.isAot[cell]).forEach((group) => this.play(group, after));
      this.aot.forEach((aot, miss) => { if (aot >= 0 && after[aot] === HIT) after[miss] = HIT; });
      groups.filter(([cell]) => !this.isAot[cell]).forEach((group) => this.play(group, after));
      if (fields.length || forms.length) {
        after.forEach((outcome, miss) => { if (this.isOpen[miss] && outcome === MISS) after[miss] = UNKNOWN; });
      }
      const found = { hits: 0, undecided: 0, won: 0 };
      after.forEach((outcome, miss) => {
        found.undecided += outcome === UNKNOWN;
        if (outcome !== HIT) return;
        found.hits += 1;
        found.won += Math.max(this.taken[miss], 0);
      });
      return found;
    }

    // The hit rates if so many misses had hit: what was not recorded before is not known after.
    rates({ hits, undecided, won }) {
      const { before } = this;
      const saved = before.time_saved_ns === null && !won ? null : before.time_saved_ns + won;
      const lost = before.time_lost_ns === null ? null : before.time_lost_ns - won;
      const seen = before.lookups - before.unknown;
      return {
        ...before,
        hits: before.hits + hits,
        misses: before.misses - hits,
        undecided,
        hit_rate: seen ? (before.hits + hits) / seen : null,
        time_saved_ns: saved,
        time_lost_ns: lost,
        time_hit_rate: before.time_hit_rate === null ? null : saved / (saved + lost),
      };
    }

    // The values that still tell keys apart.
    counting(fields, forms) {
      const off = new Set(fields);
      let bits = 0;
      forms.map((form) => this.forms[form]).forEach((form) => { form.fields.forEach((field) => off.add(field)); bits |= form.part; });
      return this.values.flatMap((values, field) => {
        if (off.has(field)) return [];
        return bits && this.parted?.field === field ? this.parted.values[bits] || [] : values;
      });
    }

    // The cells that share a what-if key and a directory with others.
    groups(counting) {
      const number = Int32Array.from(this.home);
      let count = number.reduce((a, b) => Math.max(a, b), -1) + 1;
      for (const { cells, values, size } of counting) {
        const numbers = new Map();
        cells.forEach((cell, at) => {
          const both = number[cell] * size + values[at];
          if (!numbers.has(both)) numbers.set(both, count++);
          number[cell] = numbers.get(both);
        });
      }
      return listed(number, count).filter((group) => group.length > 1);
    }

    // Plays some cells into one directory, and decides their misses; those that hit through an AOTAutograd entry do already.
    play(group, after) {
      const misses = group.flatMap((cell) => this.missesOf[cell]).sort((a, b) => a - b);
      const directory = new Directory(group.flatMap((cell) => this.eventsOf[cell]), after);
      for (const miss of misses) if (after[miss] !== HIT) after[miss] = directory.wouldFind(this.cell[miss], this.at[miss], this.guards[miss]);
    }
  }
  return (codes) => new Replay(codes);
})();
