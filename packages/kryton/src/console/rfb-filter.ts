/**
 * Makes a VNC console view-only: what a client sends is parsed as RFB and everything that would act on
 * the guest (keys, pointer, clipboard, screen size) is left out.
 *
 * Message numbers and sizes are those of RFC 6143 and the IANA registry of RFB message types. A message
 * that is not known cannot be skipped safely, so it ends the connection.
 */

/** Largest message a client may send, bytes. */
export const maxMessageBytes = 4 * 1024 * 1024;

const versionBytes = 12;
const dropped = new Set([4, 5, 6, 251, 255]);

type Stage = "version" | "security" | "challenge" | "init" | "messages";

/** Filters one client's bytes. */
export class ViewOnlyFilter {
  #stage: Stage = "version";
  #pending: Buffer = Buffer.alloc(0);
  #old = false;

  /** What may go on to the guest. Throws a `RangeError` for bytes that are no RFB this filter knows. */
  push(chunk: Buffer): Buffer {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    if (this.#pending.length > maxMessageBytes) throw new RangeError("an RFB message is too large");
    const passed: Buffer[] = [];
    for (let size = this.#next(); size !== undefined && size <= this.#pending.length; size = this.#next()) {
      const message = this.#pending.subarray(0, size);
      this.#pending = this.#pending.subarray(size);
      if (this.#accept(message)) passed.push(message);
    }
    return Buffer.concat(passed);
  }

  /** Size of the next unit, or `undefined` until enough of it is there to tell. */
  #next(): number | undefined {
    const bytes = this.#pending;
    if (bytes.length === 0) return undefined;
    switch (this.#stage) {
      case "version":
        return versionBytes;
      case "security":
      case "init":
        return 1;
      case "challenge":
        return 16;
      case "messages":
        return messageSize(bytes);
    }
  }

  #accept(unit: Buffer): boolean {
    switch (this.#stage) {
      case "version":
        this.#old = unit.toString("latin1").startsWith("RFB 003.003");
        this.#stage = this.#old ? "init" : "security";
        return true;
      case "security": {
        const type = unit[0];
        if (type !== 1 && type !== 2) throw new RangeError(`security type ${type} cannot be watched only`);
        this.#stage = type === 2 ? "challenge" : "init";
        return true;
      }
      case "challenge":
        this.#stage = "init";
        return true;
      case "init":
        this.#stage = "messages";
        return true;
      case "messages":
        return !dropped.has(unit[0] ?? 0);
    }
  }
}

/** Size of a client message, or `undefined` until its length field is there. */
function messageSize(bytes: Buffer): number | undefined {
  const withLength = (at: number, size: (buffer: Buffer) => number): number | undefined =>
    bytes.length < at ? undefined : size(bytes);
  switch (bytes[0]) {
    case 0: // SetPixelFormat
      return 20;
    case 2: // SetEncodings
      return withLength(4, (b) => 4 + 4 * b.readUInt16BE(2));
    case 3: // FramebufferUpdateRequest
      return 10;
    case 4: // KeyEvent
      return 8;
    case 5: // PointerEvent
      return 6;
    case 6: // ClientCutText; a negative length marks the extended form
      return withLength(8, (b) => 8 + Math.abs(b.readInt32BE(4)));
    case 150: // EnableContinuousUpdates
      return 10;
    case 248: // ClientFence
      return withLength(9, (b) => 9 + b.readUInt8(8));
    case 251: // SetDesktopSize
      return withLength(7, (b) => 8 + 16 * b.readUInt8(6));
    case 255: // QEMU: extended keys and audio
      return withLength(4, (b) => (b[1] === 0 ? 12 : b[1] === 1 && b.readUInt16BE(2) === 2 ? 10 : 4));
    default:
      throw new RangeError(`RFB message ${bytes[0]} is not known`);
  }
}
