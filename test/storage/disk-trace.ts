/**
 * Files as they would be found after a loss of power, from a trace of system calls: of each file only what had
 * been written when it was last flushed.
 */

interface Image {
  now: Buffer;
  flushed: Buffer;
}

/** Replays `strace -f -xx` lines about one database and its companions. */
export class DiskTrace {
  readonly #path: string;
  readonly #open = new Map<string, string>();
  readonly #images = new Map<string, Image>();
  readonly #unfinished = new Map<string, string>();
  /** What a flush under way covers, by thread: what was written before it began. */
  readonly #covered = new Map<string, Buffer>();
  flushes = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Takes a line; answers the number when it is an acknowledgement. */
  line(text: string): number | undefined {
    const match = /^(\d+) +(.*)$/.exec(text);
    if (!match) return undefined;
    const [, thread = "", rest = ""] = match;
    // A call that another thread interrupted comes in two lines.
    if (rest.endsWith("<unfinished ...>")) {
      this.#unfinished.set(thread, rest.slice(0, -"<unfinished ...>".length));
      const flushing = this.#open.get(/^f(?:data)?sync\((\d+)/.exec(rest)?.[1] ?? "");
      if (flushing !== undefined) this.#covered.set(thread, Buffer.from(this.#image(flushing).now));
      return undefined;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    const covered = this.#covered.get(thread);
    this.#covered.delete(thread);
    return this.#call(resumed ? (this.#unfinished.get(thread) ?? "") + (resumed[1] ?? "") : rest, covered);
  }

  /** What a loss of power now would leave, by suffix of the path. */
  durable(): [string, Buffer][] {
    return [...this.#images].map(([path, image]) => [path.slice(this.#path.length), image.flushed]);
  }

  #call(call: string, covered?: Buffer): number | undefined {
    const match = /^(\w+)\((.*)\) += +(-?\d+)/s.exec(call);
    if (!match) return undefined;
    const [, name, args = "", result = ""] = match;
    if (Number(result) < 0) return undefined;
    const fd = /^(\d+)/.exec(args)?.[1] ?? "";
    const path = this.#open.get(fd);
    switch (name) {
      case "openat": {
        const opened = unhex(/"((?:\\x[0-9a-f]{2})*)"/.exec(args)?.[1] ?? "").toString();
        if (!opened.startsWith(this.#path)) return undefined;
        this.#open.set(result, opened);
        if (!this.#images.has(opened))
          this.#images.set(opened, { now: Buffer.alloc(0), flushed: Buffer.alloc(0) });
        return undefined;
      }
      case "close":
        this.#open.delete(fd);
        return undefined;
      case "write":
        if (fd === "1")
          return Number(/^acknowledged (\d+)/.exec(data(args).toString())?.[1] ?? Number.NaN) || undefined;
        return undefined;
      case "pwrite64":
        if (path !== undefined) this.#write(path, data(args), Number(/, (\d+)$/.exec(args)?.[1]));
        return undefined;
      case "ftruncate":
        if (path !== undefined) this.#truncate(path, Number(/, (\d+)$/.exec(args)?.[1]));
        return undefined;
      case "fsync":
      case "fdatasync":
        if (path !== undefined) this.#flush(path, covered ?? Buffer.from(this.#image(path).now));
        return undefined;
      default:
        return undefined;
    }
  }

  #image(path: string): Image {
    const image = this.#images.get(path);
    if (!image) throw new Error(`${path} was not opened`);
    return image;
  }

  #write(path: string, bytes: Buffer, position: number): void {
    const image = this.#image(path);
    if (image.now.length < position + bytes.length)
      image.now = Buffer.concat([image.now, Buffer.alloc(position + bytes.length - image.now.length)]);
    bytes.copy(image.now, position);
  }

  #truncate(path: string, size: number): void {
    const image = this.#image(path);
    image.now =
      size <= image.now.length
        ? Buffer.from(image.now.subarray(0, size))
        : Buffer.concat([image.now, Buffer.alloc(size - image.now.length)]);
  }

  #flush(path: string, bytes: Buffer): void {
    this.#image(path).flushed = bytes;
    this.flushes++;
  }
}

function data(args: string): Buffer {
  return unhex(/"((?:\\x[0-9a-f]{2})*)"/.exec(args)?.[1] ?? "");
}

function unhex(escaped: string): Buffer {
  return Buffer.from(escaped.replaceAll("\\x", ""), "hex");
}
