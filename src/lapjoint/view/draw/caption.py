"""Caption: a line at the foot of a picture with the scene, the time, the workers and the meaning of the colours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LapjointError
from .recorded import Recorded

_INK = (38, 42, 48)
_PAPER = (255, 255, 255)


class Caption:
    """Draws the caption of a recording onto pictures of one size."""

    def __init__(self, recorded: Recorded, size: tuple[int, int]) -> None:
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError:
            raise LapjointError("captions need Pillow: pip install 'lapjoint[picture]'") from None
        recording = recorded.recording
        count = recording.worker_count
        self._start = recording.scene.name
        self._rest = f"{count} worker{'s' if count != 1 else ''}"
        self._exchanges_at = recorded.exchanges_at
        self._digits = 2 if recorded.times[-1] < 100 else 1
        self._last = float(recorded.times[-1])
        height = float(np.clip(min(size[1] / 22, size[0] / 34), 9, 48))
        self._font = ImageFont.load_default(height)
        self._small = ImageFont.load_default(0.8 * height)
        self._step = height
        self._keys = self._drawn_legend(recorded, size[0], (Image, ImageDraw))

    def draw(self, pixels: NDArray[np.uint8], time: float) -> NDArray[np.uint8]:
        """The picture with its caption."""
        from PIL import Image, ImageDraw

        step = self._step
        foot = min(round(1.9 * step), pixels.shape[0])
        shown = np.array(pixels)
        shown[-foot:] = 255 - (255 - shown[-foot:]) // 4  # a pale strip, so that the words can be read over anything
        image = Image.fromarray(shown)
        pen = ImageDraw.Draw(image)
        x, y = 0.7 * step, image.height - 0.62 * step
        # Numbers keep their place while the time runs: the widest time sets it.
        widest = pen.textlength(f"{self._last:.{self._digits}f} s".replace("1", "0"), font=self._font)
        self._write(pen, (x, y), self._start, "ls", self._font)
        x += pen.textlength(self._start, font=self._font) + step + widest
        self._write(pen, (x, y), f"{time:.{self._digits}f} s", "rs", self._font)
        exchanges = self._exchanges_at(time)
        rest = f"{self._rest}, {exchanges}" if exchanges else self._rest
        self._write(pen, (x + step, y), rest, "ls", self._font)
        x += 2 * step + pen.textlength(rest, font=self._font)
        if self._keys is not None and x + self._keys.width < image.width:
            place = (round(image.width - self._keys.width - 0.7 * step), round(y - 0.8 * step))
            image.paste(self._keys, place, self._keys)
        return np.asarray(image)

    @staticmethod
    def _write(pen: Any, place: tuple[float, float], text: str, anchor: str, font: Any) -> None:
        pen.text(place, text, fill=_INK, font=font, anchor=anchor)

    def _drawn_legend(self, recorded: Recorded, width: int, pillow: tuple[Any, Any]) -> Any:
        """Swatches, with words where they are needed; nothing where there is one colour or too little room."""
        entries = recorded.legend()
        if len(entries) < 2:
            return None
        image_module, draw_module = pillow
        step, texts = self._step, [entry.text for entry in entries]
        if recorded.mode in ("worker", "interface", "label"):  # names would add nothing to the colours
            texts = [""] * len(entries)
        pen = draw_module.Draw(image_module.new("RGBA", (1, 1)))
        lengths = [0.85 * step + (pen.textlength(text, font=self._small) + 0.6 * step if text else 0) for text in texts]
        total = sum(lengths)
        if total > 0.7 * width:
            return None
        keys = image_module.new("RGBA", (round(total) + 2, round(1.3 * step)))
        pen, x = draw_module.Draw(keys), 1.0
        for entry, text, length in zip(entries, texts, lengths, strict=True):
            color = tuple(round(255 * share) for share in entry.color)
            pen.rectangle((x, 0.1 * step, x + 0.7 * step, 0.8 * step), fill=color, outline=_PAPER)
            if text:
                self._write(pen, (x + 0.9 * step, 0.75 * step), text, "ls", self._small)
            x += length
        return keys
