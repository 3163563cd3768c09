// What a page without a kernel has in place of anywidget's model.
class Model {
  constructor(values) {
    this.values = values;
    this.heard = {};
  }
  get(name) { return this.values[name]; }
  on(name, act) { (this.heard[name] ??= []).push(act); }
  off(name, act) { this.heard[name] = this.heard[name].filter((one) => one !== act); }
  set(name, value) { this.values[name] = value; this.changed = name; }
  save_changes() { this.tell(this.changed); }
  tell(name) { for (const act of this.heard[`change:${name}`] ?? []) act(); }
}
