// Queries as people type them. Of three words or more, those that say nothing are left out. A query
// that finds nothing is sent again: with words that differ in one letter, then in two.
{
  const QUERY = 2, RESULT = 3; // kinds of messages of Material's search
  const SEPARATORS = /[\s\-,:!=[\]()"`/.;+*~^]+/;
  const FILLERS = new Set(
    "a an and are be by can do does for from how i in is it my of on or the to with".split(" ")
  );
  const send = Worker.prototype.postMessage;

  function telling(query) {
    const words = query.split(" ");
    const rest = words.filter(word => !FILLERS.has(word.toLowerCase()));
    return words.length > 2 && rest.length ? rest.join(" ") : query;
  }

  function loose(query, letters) {
    const words = query.split(SEPARATORS).filter(word => word);
    return words.map(word => (word.length > letters + 2 ? `${word}~${letters}` : word)).join(" ");
  }

  function again({ target, data: { type, data } }) {
    if (type !== RESULT || data.items.length || target.letters === 2) return;
    target.letters += 1;
    send.call(target, { type: QUERY, data: loose(target.query, target.letters) });
  }

  Worker.prototype.postMessage = function (message) {
    if (message.type === QUERY) {
      if (this.query === undefined) this.addEventListener("message", again);
      [this.query, this.letters] = [telling(message.data), 0];
      message = { ...message, data: this.query };
    }
    send.call(this, message);
  };
}
